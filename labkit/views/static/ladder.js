// A bar for each step of a ladder at one size, with what it gained on the step before; a library and the peak are lines.

const view = {
  start(ui, data) {
    const {steps, speeds, gains, baseline: [library, lines], peak: [peak, peakText], notes, caption} = data;
    const ROW = 26, TOP = notes.length ? 54 : 40, UNDER = 30, NOTE = 88, BARS = 500;   // with notes, least width of the rest
    const number = value => value === null ? '' : value >= 100 ? value.toFixed(0) : value.toFixed(1);
    const gained = value => value === null ? '' : `${value < 0 ? '\u2212' : '+'}${Math.abs(100 * value).toFixed(1)}%`;
    // The lines of a heading, none wider than its column.
    function broken(g, heading) {
      const lines = [''];
      g.font = '400 11.5px system-ui, sans-serif';
      for (const word of heading.split(/\s+/)) {
        const longer = `${lines.at(-1)} ${word}`.trim();
        if (lines.at(-1) && g.measureText(longer).width > NOTE - 10) lines.push(word); else lines[lines.length - 1] = longer;
      }
      return lines;
    }
    ui.canvas({
      label: 'TFLOP/s of each step', maxWidth: 960, height: () => TOP + steps.length * ROW + UNDER,
      paint(g, width) {
        const shown = width > BARS + NOTE * notes.length ? notes : [], name = width < 560 ? 118 : 132;
        const right = width - 12 - shown.length * NOTE, unit = (right - name) / (1.02 * peak), x = value => name + value * unit;
        const write = (text, at, y, colour = 'fg', weight = 400, size = 12, family = 'system-ui, sans-serif') => {
          g.font = `${weight} ${size}px ${family}`;
          g.fillStyle = colour[0] === '#' ? colour : ui.colour(colour);
          g.fillText(text, at, y);
        };
        const bottom = TOP + steps.length * ROW;
        g.textBaseline = 'middle';
        g.textAlign = 'center';
        for (let tick = 0; tick <= peak; tick += 10) {
          g.fillStyle = ui.colour('line');
          g.fillRect(x(tick), TOP, 1, bottom - TOP + 2);
          write(tick, x(tick), bottom + 11, 'dim', 400, 11);
        }
        for (const [value, dashed] of [[lines[ui.step], [5, 4]], [peak, []]]) {
          g.strokeStyle = ui.colour('fg');
          g.lineWidth = 1.5;
          g.setLineDash(dashed);
          g.beginPath();
          g.moveTo(x(value), TOP - 6);
          g.lineTo(x(value), bottom + 2);
          g.stroke();
        }
        g.setLineDash([]);
        g.textAlign = 'right';
        write(`${library}: ${number(lines[ui.step])}`, x(lines[ui.step]) + 4, TOP - 14, 'fg', 650);
        write(width < 560 ? `peak: ${number(peak)}` : peakText, x(peak), TOP - 30, 'fg', 650);
        write('TFLOP/s', right, bottom + 24, 'dim', 400, 11);
        steps.forEach((step, i) => {
          const y = TOP + i * ROW + ROW / 2, speed = speeds[ui.step][i], gain = gains[ui.step][i];
          g.textAlign = 'right';
          write(step, name - 8, y, 'fg', 400, width < 560 ? 11 : 12.5, 'ui-monospace, Menlo, monospace');
          g.textAlign = 'left';
          if (speed === null) { write('not measured', name + 6, y, 'dim'); return; }
          g.fillStyle = ui.colour(gain < 0 ? 'hot' : 'A', 0.85);
          g.fillRect(name, y - ROW / 2 + 3, speed * unit, ROW - 6);
          const ink = ui.ink(g.fillStyle), text = number(speed), more = gained(gain);
          g.font = '650 13px system-ui, sans-serif';
          const room = g.measureText(text).width + 60;
          const inside = speed * unit > room + 4 && x(speed) + room > x(lines[ui.step]) - 4 && x(speed) < x(peak);
          const begin = inside ? x(speed) - room : x(speed) + 7;
          write(text, begin, y, inside ? ink : 'fg', 650, 13);
          write(more, begin + room - 54, y, inside ? ink : gain < 0 ? 'hot-text' : 'dim', 400, 12);
          g.textAlign = 'right';
          shown.forEach(([, texts], n) => write(texts[i], right + 12 + (n + 1) * NOTE - 8, y, 'fg', 400, 12.5));
        });
        g.textAlign = 'right';
        shown.forEach(([heading], n) => broken(g, heading).forEach((line, k, all) =>
          write(line, right + 12 + (n + 1) * NOTE - 8, TOP - 12 - 14 * (all.length - 1 - k), 'dim', 400, 11.5)));
      },
    });
    ui.legend([['A', 'a step, and what it gained on the one before', 0.85], ['hot', 'slower than the one before', 0.85]]);
    ui.element('p', {class: 'wait', text: caption}, ui.footer);
  },
};
