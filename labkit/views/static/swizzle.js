// Each trace's tile: a row is 128 bytes, so a column of the picture is always the same four banks.
const view = {
  start(ui, data) {
    const sheet = ui.element('div', {class: 'row'}, ui.body), alone = data.sides.length === 1;
    const TOP = 40, LEFT = 34, ROW = 19, STACK = 9, MOST_ROWS = 16;
    for (const side of data.sides) {
      const shown = Math.min(side.rows, MOST_ROWS), bottom = TOP + shown * ROW + 24, worst = Math.max(...side.passes);
      ui.canvas({
        label: `${side.label}: rows of ${side.array}, eight pieces each, and the banks they lie in`, parent: sheet,
        maxWidth: all => alone ? Math.min(560, all) : all < 620 ? all : Math.min(470, Math.floor((all - 24) / 2)),
        height: () => bottom + worst * STACK + 22,
        paint(g, width) {
          const step = Math.min(ui.step, side.passes.length - 1), passes = side.passes[step], w = (width - LEFT) / 8;
          const wanted = side.places.subarray(step * 8, step * 8 + 8), hue = passes > 1 ? 'hot' : 'C';
          const from = Math.min(Math.floor(Math.min(...wanted) / 8 / MOST_ROWS) * MOST_ROWS, side.rows - shown);
          g.textBaseline = 'alphabetic';
          g.textAlign = 'left';
          g.font = '600 13px system-ui, sans-serif';
          g.fillStyle = ui.colour('fg');
          g.fillText(side.label, 0, 13, width * 0.6);
          g.textAlign = 'right';
          g.fillStyle = ui.colour(passes > 1 ? 'hot-text' : 'fg');
          g.fillText(passes + (passes > 1 ? ' wavefronts' : ' wavefront'), width - 2, 13);
          g.font = '11px system-ui, sans-serif';
          g.fillStyle = ui.colour('dim');
          g.fillText('row', LEFT - 8, TOP - 6);
          g.textAlign = 'center';
          for (let p = 0; p < 8; p++) g.fillText(p || w < 56 ? `${4 * p}-${4 * p + 3}` : 'banks 0-3', LEFT + (p + 0.5) * w, TOP - 6, w - 2);
          const asked = new Map();
          wanted.forEach((place, i) => asked.set(place, i));
          for (let row = from; row < from + shown; row++) {
            const y = TOP + (row - from) * ROW;
            g.textAlign = 'right';
            g.font = '11px ui-monospace, Menlo, monospace';
            g.fillStyle = ui.colour('dim');
            g.fillText(row, LEFT - 8, y + 13);
            g.textAlign = 'center';
            for (let p = 0; p < 8; p++) {
              const on = asked.has(row * 8 + p), piece = side.contents[row * 8 + p];
              g.fillStyle = ui.colour(on ? hue : 'cell');
              g.fillRect(LEFT + p * w, y, w - 2, ROW - 2);
              g.fillStyle = on ? ui.ink(g.fillStyle) : ui.colour('dim');
              g.font = `${on ? '700 ' : ''}11px ui-monospace, Menlo, monospace`;
              if (piece >= 0) g.fillText(piece, LEFT + (p + 0.5) * w - 1, y + 13);
            }
          }
          const stacks = new Array(8).fill(0);
          for (const place of asked.keys()) stacks[place % 8]++;
          stacks.forEach((count, p) => {
            for (let i = 0; i < worst; i++) {
              g.fillStyle = i < count ? ui.colour(count > 1 ? 'hot' : 'C') : ui.colour('cell');
              g.fillRect(LEFT + p * w, bottom - 14 + i * STACK, w - 2, STACK - 2);
            }
          });
          g.textAlign = 'left';
          g.font = '11px system-ui, sans-serif';
          g.fillStyle = ui.colour('dim');
          g.fillText('rows that wait in each four banks, one wavefront each', LEFT, bottom + worst * STACK + 4, width - LEFT);
        },
      });
    }
    ui.legend([['C', 'requested, alone in its banks'], ['hot', 'requested, several in the same banks'], ['cell', 'the number: which vector of its row is stored there']]);
    return null;
  },
};
