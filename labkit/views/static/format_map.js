// A cell per filter and number of channels: how many times faster bfloat16 is predicted to be than float32, in the
// colour of the faster one. The step is the number of images; the colour's scale never changes.

const view = {
  start(ui, data) {
    const {taps, channels, batches, factors, full, labels, numbers} = data;
    const LEFT = 76, TOP = 24, CELL = 96, LINE = 38, WIDTH = LEFT + taps.length * CELL, TALL = TOP + channels.length * LINE + 4;
    ui.canvas({
      label: 'how many times faster bfloat16 is predicted to be, by taps and channels', maxWidth: room => Math.min(WIDTH, room),
      height: width => TALL * Math.min(1, width / WIDTH),
      paint(g, width) {
        g.scale(Math.min(1, width / WIDTH), Math.min(1, width / WIDTH));
        g.font = '12px system-ui, sans-serif';
        g.fillStyle = ui.colour('dim');
        g.textAlign = 'right';
        g.fillText('channels', LEFT - 10, 14);
        channels.forEach((count, row) => g.fillText(count, LEFT - 10, TOP + row * LINE + LINE / 2 + 3));
        g.textAlign = 'center';
        taps.forEach((side, column) => g.fillText(`${side} x ${side} taps`, LEFT + (column + 0.5) * CELL, 14));
        channels.forEach((_, row) => taps.forEach((_, column) => {
          const factor = factors[(ui.step * channels.length + row) * taps.length + column];
          const strength = Math.min(1, Math.abs(Math.log(factor)) / Math.log(full));
          const px = LEFT + column * CELL, py = TOP + row * LINE;
          g.fillStyle = ui.colour(factor > 1 ? 'A' : 'B', 0.14 + 0.5 * strength);
          g.fillRect(px, py, CELL - 2, LINE - 2);
          g.fillStyle = ui.ink(g.fillStyle);
          g.font = `${factor > 1 ? 650 : 400} 14px system-ui, sans-serif`;
          g.fillText(`${factor.toFixed(factor < 2 ? 2 : 1)}x`, px + CELL / 2 - 1, py + LINE / 2 + 4);
        }));
      },
    });
    const shows = labels.map(label => ui.stat(label));
    const images = ui.stat('images');
    ui.legend([['A', 'bfloat16 is faster', 0.6], ['B', 'float32 is faster', 0.6]]);
    return step => { shows.forEach((show, i) => show(numbers[step][i])); images(batches[step]); };
  },
};
