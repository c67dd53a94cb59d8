// One grid of elements for each walk: what is in the cache, what was evicted, and what is accessed now; below each, its
// misses on a scale that all share.
const view = {
  start(ui, data) {
    const [rows, columns] = data.array.shape, size = rows * columns, all = data.sides[0].missed.length, GAP = 28, HEAD = 22, BAR = 34;
    const line = Int32Array.from({length: size}, (_, element) => Math.floor(labkitAddress(data.array, element) / data.line_bytes));
    const cellOf = width => Math.max(1.5, Math.min(4.25, Math.floor((width - GAP) / 2 / columns * 4) / 4));

    // What each side's elements are after the first `end` accesses: 0 not accessed, 1 evicted, 2 in the cache.
    function states(side, end) {
      const states = new Uint8Array(size), held = new Set();
      for (let i = 0; i < end; i++) states[side.elements[i]] = 1;
      for (let m = 0; m < side.moves.length && side.moves[m] < end; m += 3)
        if (side.moves[m + 2]) held.add(side.moves[m + 1]); else held.delete(side.moves[m + 1]);
      for (let element = 0; element < size; element++) if (held.has(line[element])) states[element] = 2;
      return states;
    }

    const row = ui.element('div', {class: 'row'}, ui.body);
    ui.canvas({
      parent: row,
      label: `the elements of ${data.array.name} as ${data.sides.map(side => side.name).join(' and ')} reach them`, maxWidth: all => all < 700 ? all : Math.min(720, all - 196),
      height: width => HEAD + rows * cellOf(width) + BAR,
      paint(g, width) {
        const cell = cellOf(width), wide = columns * cell, end = data.ends[ui.step], before = ui.step ? data.ends[ui.step - 1] : 0;
        data.sides.forEach((side, number) => {
          const x = number * (wide + GAP), edge = cell >= 3 ? 0.5 : 0, state = states(side, end), y = HEAD + rows * cell + 10;
          g.textAlign = 'left';
          g.font = '600 13px ui-monospace, Menlo, monospace';
          g.fillStyle = ui.colour('fg');
          g.fillText(side.name, x, 14);
          const looks = [ui.colour('cell'), ui.colour('dim', 0.35), ui.colour('A', 0.6)];
          for (let element = 0; element < size; element++) {
            g.fillStyle = looks[state[element]];
            g.fillRect(x + element % columns * cell, HEAD + Math.floor(element / columns) * cell, cell - edge, cell - edge);
          }
          for (let i = before; i < end; i++) {
            const element = side.elements[i];
            g.fillStyle = ui.colour(side.missed[i] ? 'hot' : 'ink');
            g.fillRect(x + element % columns * cell - 1, HEAD + Math.floor(element / columns) * cell - 1, cell + 2, cell + 2);
          }
          let missed = 0;
          for (let i = 0; i < end; i++) missed += side.missed[i];
          g.fillStyle = ui.colour('cell');
          g.fillRect(x, y, wide, 10);
          g.fillStyle = ui.colour('dim', 0.5);
          g.fillRect(x, y, wide * end / all, 10);
          g.fillStyle = ui.colour('hot');
          g.fillRect(x, y, wide * missed / all, 10);
        });
      },
    });
    const side = ui.element('div', {style: 'flex:1 1 170px;margin-top:14px'}, row);
    const numbers = data.stats.labels.map(label => ui.stat(label, side));
    ui.legend([['hot', 'now: it missed'], ['ink', 'now: it was in the cache'], ['A', 'in the cache', 0.6], ['dim', 'accessed, evicted', 0.35], ['line', 'not accessed yet', 'outline']]);
    ui.legend([['hot', `bar below: misses, of ${all.toLocaleString('en')} accesses`], ['dim', 'accesses so far', 0.5]]);
    return step => numbers.forEach((show, i) => show(data.stats.values[step][i]));
  },
};
