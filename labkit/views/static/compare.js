// A guess and a measurement on one logarithmic scale.

const view = {
  start(ui, data) {
    if (!data.marks.length) return;
    const [[guess, guessText], [actual, actualText]] = data.marks;
    const low = Math.floor(Math.log10(Math.min(guess, actual)) - 0.3), high = Math.ceil(Math.log10(Math.max(guess, actual)) + 0.3);
    ui.canvas({
      label: `${guessText}; ${actualText}`, height: () => 92, maxWidth: 720,
      paint(g, width) {
        const y = 40, edge = 30, at = value => edge + (width - 2 * edge) * (Math.log10(value) - low) / (high - low);
        g.strokeStyle = ui.colour('dim');
        g.beginPath();
        g.moveTo(edge, y);
        g.lineTo(width - edge, y);
        const every = Math.ceil((high - low) / (width / 90));
        g.font = '11px system-ui';
        g.fillStyle = ui.colour('dim');
        g.textAlign = 'center';
        for (let power = low; power <= high; power++) {
          g.moveTo(at(10 ** power), y - 3);
          g.lineTo(at(10 ** power), y + 3);
          if ((power - low) % every === 0) g.fillText((10 ** power).toLocaleString('en', {maximumSignificantDigits: 1, notation: Math.abs(power) > 6 ? 'scientific' : 'standard'}), at(10 ** power), 86);
        }
        g.stroke();
        g.font = '600 13px system-ui';
        const write = (text, x, top) => {
          const half = g.measureText(text).width / 2;
          g.fillText(text, Math.max(half, Math.min(width - half, x)), top);
        };
        g.lineWidth = 2.2;
        g.strokeStyle = g.fillStyle = ui.colour('A');
        g.beginPath();
        g.arc(at(guess), y, 8, 0, 7);
        g.stroke();
        write(guessText, at(guess), y - 18);
        g.fillStyle = ui.colour('hot');
        g.beginPath();
        g.arc(at(actual), y, 5, 0, 7);
        g.fill();
        g.fillStyle = ui.colour('hot-text');
        write(actualText, at(actual), y + 26);
      },
    });
  },
};
