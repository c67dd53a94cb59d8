// Above, the planes of an image with numbered elements. Below, a line of memory for each layout: the same numbers in its
// order. A channel has one shade everywhere; what a step marks has a frame.

const view = {
  start(ui, data) {
    const {shape: [channels, height, width], layouts, orders, marked, stats} = data;
    const count = channels * height * width, plane = height * width, most = marked.shape[1];
    const CELL = 27, GAP = 14, HEAD = 18, LINE = 26, SPACE = 24;

    const perLine = wide => Math.min(count, Math.max(12, Math.floor(Math.floor(wide / 19) / 12) * 12));   // cells in a line of memory
    const perRow = wide => Math.max(1, Math.min(channels, Math.floor((wide + GAP) / (width * CELL + GAP))));
    const high = wide => Math.ceil(channels / perRow(wide)) * (HEAD + height * CELL + 10)
      + layouts.length * (SPACE + Math.ceil(count / perLine(wide)) * LINE);

    ui.canvas({
      label: 'an image and its numbers in memory, in three layouts', maxWidth: 970, height: high,
      paint(g, wide) {
        const now = new Set(marked.subarray(ui.step * most, (ui.step + 1) * most));
        function cell(number, x, y, across, down) {
          g.fillStyle = ui.colour('A', 0.06 + 0.5 * Math.floor(number / plane) / Math.max(channels - 1, 1));
          g.fillRect(x, y, across - 1.5, down - 1.5);
          const ink = ui.ink(g.fillStyle);
          if (now.has(number)) {
            g.strokeStyle = ui.colour('hot');
            g.lineWidth = 3;
            g.strokeRect(x + 1, y + 1, across - 3.5, down - 3.5);
          }
          g.font = `${now.has(number) ? 700 : 400} 11px system-ui, sans-serif`;
          g.fillStyle = ink;
          g.textAlign = 'center';
          g.textBaseline = 'middle';
          g.fillText(number, x + across / 2 - 0.5, y + down / 2);
        }
        function heading(text, x, y) {
          g.font = '600 13px system-ui, sans-serif';
          g.fillStyle = ui.colour('fg');
          g.textAlign = 'left';
          g.textBaseline = 'alphabetic';
          g.fillText(text, x, y);
        }
        const row = perRow(wide);
        let top = 0;
        for (let c = 0; c < channels; c++) {
          const left = c % row * (width * CELL + GAP);
          top = Math.floor(c / row) * (HEAD + height * CELL + 10);
          heading(`channel ${c}`, left, top + 13);
          for (let i = 0; i < plane; i++)
            cell(c * plane + i, left + i % width * CELL, top + HEAD + Math.floor(i / width) * CELL, CELL, CELL);
        }
        top += HEAD + height * CELL + 10;
        const inLine = perLine(wide), across = Math.min(wide / inLine, 30);
        layouts.forEach((name, layout) => {
          heading(name, 0, top + 16);
          for (let place = 0; place < count; place++)
            cell(orders[layout * count + place], place % inLine * across, top + SPACE + Math.floor(place / inLine) * LINE, across, LINE - 4);
          top += SPACE + Math.ceil(count / inLine) * LINE;
        });
      },
    });
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([['A', 'a channel: one shade'], ['hot', 'marked', 'outline']]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};
