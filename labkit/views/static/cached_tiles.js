// Left: A, B and C with the current tiles outlined; what the cache holds is coloured. Right: the cache as a box of lines,
// the lines of the tiles that are not in it, and the misses of whole runs over the tile, on one scale for all steps.
const OUTSIDE = 0, OTHER = 1, CURRENT = 2;

const view = {
  start(ui, data) {
    const [A, B, C] = data.arrays, row = ui.element('div', {class: 'row'}, ui.body), GAP = 22, HEAD = 18;
    const columns = A.shape[1] + B.shape[1], rows = B.shape[0] + A.shape[0];
    const count = data.sides.length, arrays = data.arrays.length;
    const totals = data.sides.map((_, step) => data.misses.subarray(step * arrays, (step + 1) * arrays).reduce((a, b) => a + b));
    const linesOf = step => Array.from({length: data.lines[step].length / 4}, (_, i) => data.lines[step].subarray(4 * i, 4 * i + 4));

    const cellOf = width => (width - GAP) / columns;
    ui.canvas({
      label: 'A, B and C: the current tiles, and what the cache holds', parent: row, maxWidth: all => all < 700 ? Math.min(430, all) : Math.min(430, Math.floor((all - 22) * 0.48)),
      height: width => rows * cellOf(width) + GAP + HEAD + 2,
      paint(g, width) {
        const cell = cellOf(width), x = A.shape[1] * cell + GAP, y = B.shape[0] * cell + GAP + HEAD;
        const places = [[0, y], [x, HEAD], [x, y]], lines = linesOf(ui.step);
        data.arrays.forEach((array, number) => {
          const [left, top] = places[number], wide = array.shape[1];
          g.font = '600 13px system-ui';
          g.fillStyle = ui.colour('fg');
          g.fillText(array.name, left, top - 5);
          g.fillStyle = ui.colour('cell');
          g.fillRect(left, top, wide * cell, array.shape[0] * cell);
          for (const [owner, first, last, state] of lines) {
            if (owner !== number || state === OUTSIDE) continue;
            g.fillStyle = ui.colour(array.name, state === CURRENT ? 0.9 : 0.35);
            for (let element = first; element <= last; element++)
              g.fillRect(left + element % wide * cell, top + Math.floor(element / wide) * cell, cell + 0.3, cell - 0.3);
          }
          const [row0, row1, column0, column1] = data.boxes.subarray((ui.step * arrays + number) * 4, (ui.step * arrays + number) * 4 + 4);
          g.strokeStyle = ui.colour('fg');
          g.lineWidth = 1.5;
          g.strokeRect(left + column0 * cell, top + row0 * cell, (column1 - column0 + 1) * cell, (row1 - row0 + 1) * cell);
        });
      },
    });

    const LINE = 16, ACROSS = 16, BOX = Math.ceil(data.capacity / ACROSS), MOST = 4 * ACROSS, BARS = 40 + (BOX + MOST / ACROSS) * LINE + 44;
    ui.canvas({
      label: 'the lines in the cache, those of the tiles outside it, and misses over the tile', parent: row, maxWidth: all => all < 700 ? Math.min(460, all) : Math.min(460, Math.floor((all - 22) * 0.52)),
      height: () => BARS + count * 22 + 6,
      paint(g, width) {
        const lines = linesOf(ui.step), text = (words, x, y, colour = 'dim', weight = '') => {
          g.font = `${weight} 12px system-ui`;
          g.fillStyle = ui.colour(colour);
          g.fillText(words, x, y);
        };
        const square = (i, top, colour, alpha, filled) => {
          const x = 2 + i % ACROSS * LINE, y = top + Math.floor(i / ACROSS) * LINE;
          if (filled) { g.fillStyle = ui.colour(colour, alpha); g.fillRect(x, y, LINE - 2, LINE - 2); return; }
          g.strokeStyle = ui.colour(colour);
          g.lineWidth = 1.5;
          g.strokeRect(x + 0.75, y + 0.75, LINE - 3.5, LINE - 3.5);
        };
        const inside = [...lines.filter(line => line[3] === CURRENT), ...lines.filter(line => line[3] === OTHER)];
        const outside = lines.filter(line => line[3] === OUTSIDE);
        text(`the cache: ${data.capacity} lines`, 0, 14, 'fg', '600');
        for (let i = 0; i < data.capacity; i++) square(i, 22, 'cell', 1, true);
        inside.forEach((line, i) => square(i, 22, data.arrays[line[0]].name, line[3] === CURRENT ? 0.9 : 0.35, true));
        g.strokeStyle = ui.colour('fg');
        g.lineWidth = 1.5;
        g.strokeRect(0.75, 20.5, ACROSS * LINE + 1, BOX * LINE + 1);
        const top = 30 + BOX * LINE, more = outside.length - MOST;
        text(outside.length ? `lines of the tiles that were evicted: ${outside.length}` : 'no line of the tiles was evicted', 0, top + 12, outside.length ? 'hot-text' : 'dim', '600');
        outside.slice(0, MOST).forEach((line, i) => square(i, top + 20, data.arrays[line[0]].name, 1, false));
        if (more > 0) text(`and ${more} more`, ACROSS * LINE + 8, top + 20 + 3.7 * LINE);
        text(width < 380 ? 'L1 misses per 1,000 multiply-adds' : 'L1 misses of the whole run, per 1,000 multiply-adds', 0, BARS - 10, 'fg', '600');
        const LEFT = 56, scale = (width - LEFT - 50) / Math.max(...totals);
        data.sides.forEach((side, step) => {
          const y = BARS + step * 22, now = step === ui.step;
          text(`${now ? '\u25B8 ' : ''}T = ${side}`, now ? 0 : 12, y + 13, now ? 'fg' : 'dim', now ? '700' : '');
          let x = LEFT;
          data.arrays.forEach((array, number) => {
            const wide = scale * data.misses[step * arrays + number];
            g.fillStyle = ui.colour(array.name, now ? 1 : 0.6);
            g.fillRect(x, y, wide, 17);
            x += wide;
          });
          text(totals[step].toFixed(1), x + 5, y + 13, now ? 'fg' : 'dim', now ? '700' : '');
        });
      },
    });
    ui.legend([...data.arrays.map(array => [array.name, `${array.name}: lines of the current tile, in the cache`, 0.9]), ['dim', 'paler: lines of other tiles', 0.35], ['fg', 'frame: the current tiles (a line may reach beyond)', 'outline']]);
    return null;
  },
};
