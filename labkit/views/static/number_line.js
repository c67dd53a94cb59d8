// Above, a row of ticks per format: its numbers between 1 and 2, with the one nearest to the step's value; where ticks
// are too dense to see, a band. Below, the range of each format on an axis of powers of ten.
const view = {
  start(ui, data) {
    const {formats, targets} = data, LEFT = 96, RIGHT = 110, ROW = 46, TOP = 30, BAR = 30;
    const write = (g, text, x, y, colour = 'fg', align = 'left', font = '12px system-ui, sans-serif') => {
      g.fillStyle = ui.colour(colour);
      g.font = font;
      g.textAlign = align;
      g.fillText(text, x, y);
    };
    ui.canvas({
      label: 'the numbers of each format between 1 and 2', height: () => TOP + formats.length * ROW + 22,
      paint(g, width) {
        const at = value => LEFT + (value - 1) * (width - LEFT - RIGHT), x = at(targets[ui.step]);
        formats.forEach(({name, ticks, nearest}, row) => {
          const y = TOP + row * ROW, near = nearest[ui.step], dense = ticks.length * 3 > width - LEFT - RIGHT;
          write(g, name, 0, y + 19);
          g.fillStyle = ui.colour('A', dense ? 0.85 : 1);
          if (dense) g.fillRect(LEFT, y, width - LEFT - RIGHT, 26);
          else for (const tick of ticks) g.fillRect(at(tick) - 1, y, 2, 26);
          g.fillStyle = ui.colour('hot');
          g.fillRect(at(near) - 2, y - 5, 4, 36);
          write(g, `${(ticks.length - 1).toLocaleString('en')} steps`, width - RIGHT + 10, y + 19, 'dim');
        });
        const bottom = TOP + formats.length * ROW;
        g.fillStyle = ui.colour('fg');
        for (let y = 16; y < bottom - 8; y += 7) g.fillRect(x - 0.5, y, 1, 4);
        write(g, targets[ui.step].toFixed(4), x, 11, 'fg', 'center', '600 12px system-ui, sans-serif');
        for (const value of [1, 1.25, 1.5, 1.75, 2]) write(g, String(value), at(value), bottom + 8, 'dim', 'center');
      },
    });
    ui.canvas({
      label: 'the range of each format, from its smallest number above 0 to its largest', height: () => TOP + formats.length * BAR + 22,
      paint(g, width) {
        const low = Math.min(...formats.map(({ends}) => ends[0])), high = Math.max(...formats.map(({ends}) => ends[1]));
        const at = power => LEFT + (power - low) / (high - low) * (width - LEFT - RIGHT - 40), bottom = TOP + formats.length * BAR;
        write(g, 'range, by powers of ten', 0, 14, 'fg', 'left', '600 12px system-ui, sans-serif');
        g.fillStyle = ui.colour('line');
        g.fillRect(at(0), TOP - 6, 1, bottom - TOP + 4);
        formats.forEach(({name, ends, words}, row) => {
          const y = TOP + row * BAR;
          write(g, name, 0, y + 13);
          g.fillStyle = ui.colour('A', 0.85);
          g.fillRect(at(ends[0]), y, at(ends[1]) - at(ends[0]), 18);
          write(g, words, at(ends[1]) + 6, y + 13, 'dim');
        });
        for (let power = Math.ceil(low / 10) * 10; power <= high; power += 10) write(g, `1e${power}`, at(power), bottom + 10, 'dim', 'center');
      },
    });
    ui.legend([['A', 'numbers of the format'], ['hot', 'the one nearest to the value'], ['fg', 'the value', 'dashed']]);
    return null;
  },
};
