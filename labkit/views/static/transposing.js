// For each run its matrices side by side: the source, the tile in shared memory if there is one, and the target. A shade
// belongs to a column of the source, and goes with the elements. Vermilion: the access of this step; pale: what its
// sectors move besides.

const view = {
  start(ui, data) {
    const {names, sides, stats} = data, GAP = 16, HEAD = 40, NOT_YET = 0.12, MOVED = 0.35;
    const panels = side => side.has_tile ? [0, 1, 2] : [0, 2];
    const side0 = Math.max(...sides.flatMap(side => side.shapes.flat()));   // one scale for all matrices
    const most = sides.reduce((sum, side) => sum + panels(side).length, 0);

    for (const side of sides) {
      const [rows, cols] = side.shapes[0], LANES = side.lanes.shape[1];
      side.ramp = column => 0.25 + 0.7 * column / Math.max(cols - 1, 1);
      side.row = (of, step) => of.subarray(step * LANES, (step + 1) * LANES);
      side.first = new Int32Array(side.stores.length + 1);   // of a step, in `moved`
      for (let i = 0, step = 0; step <= side.stores.length; step++) {
        while (i < side.moved.shape[0] && side.moved[2 * i] < step) i++;
        side.first[step] = i;
      }
      side.cells = step => {
        const strength = [0, 1, 2].map(panel => new Float32Array(side.shapes[panel][0] * side.shapes[panel][1]).fill(NOT_YET));
        for (let i = 0; i < rows * cols; i++) strength[0][i] = side.ramp(i % cols);
        const last = Math.min(step, side.stores.length - 1);
        for (let at = 0; at <= last; at++) {
          const used = side.row(side.lanes, at), held = side.row(side.tiles, at);
          for (let lane = 0; lane < LANES; lane++) {
            if (side.stores[at] && used[lane] >= 0) strength[2][used[lane]] = side.ramp(Math.floor(used[lane] / rows));
            if (!side.stores[at] && held[lane] >= 0) strength[1][held[lane]] = side.ramp(used[lane] % cols);
          }
        }
        const now = [new Set(), new Set(), new Set()], moved = [new Set(), new Set(), new Set()];
        if (step === last) {
          const panel = side.stores[step] ? 2 : 0;
          for (const element of side.row(side.lanes, step)) if (element >= 0) now[panel].add(element);
          for (const element of side.row(side.tiles, step)) if (element >= 0) now[1].add(element);
          for (let i = side.first[step]; i < side.first[step + 1]; i++) moved[panel].add(side.moved[2 * i + 1]);
        }
        return {strength, now, moved};
      };
    }

    const sheet = ui.element('div', {class: 'row', style: 'gap:10px 22px;flex-wrap:wrap'}, ui.body);
    for (const side of sides) {
      const shown = panels(side), box = ui.element('div', {style: 'min-width:0'}, sheet);
      const wideOf = cell => shown.reduce((sum, panel) => sum + cell * side.shapes[panel][1] + GAP, 0);
      const cellOf = room => Math.max(2, Math.min(7, Math.floor((room - GAP * most - 22 * (sides.length - 1)) / (most * (side0 + 0.5)))));
      const together = all => cellOf(all) >= 4 ? cellOf(all) : Math.max(2, Math.min(6, Math.floor((all - GAP * 3) / (3 * side0 + 1))));
      let cell = 4;
      ui.canvas({
        label: `${side.name}: the matrix, its tile and its transpose`, parent: box,
        maxWidth: all => { cell = together(all); return Math.min(all, wideOf(cell)); },
        height: () => HEAD + cell * Math.max(...shown.map(panel => side.shapes[panel][0])) + 4,
        paint(g) {
          const {strength, now, moved} = side.cells(ui.step);
          g.fillStyle = ui.colour('fg');
          g.font = '600 14px system-ui, sans-serif';
          g.fillText(side.name, 0, 14);
          let left = 0;
          for (const panel of shown) {
            const [rows, cols] = side.shapes[panel];
            g.fillStyle = ui.colour('dim');
            g.font = '12px system-ui, sans-serif';
            g.fillText(panel === 1 ? `${names[1]}, shared` : names[panel], left, HEAD - 7);
            for (let i = 0; i < rows * cols; i++) {
              const x = left + i % cols * cell, y = HEAD + Math.floor(i / cols) * cell;
              g.fillStyle = now[panel].has(i) ? ui.colour('hot') : moved[panel].has(i) ? ui.colour('hot', MOVED) : ui.colour('ABC'[panel], strength[panel][i]);
              g.fillRect(x, y, cell - 0.7, cell - 0.7);
            }
            left += cols * cell + GAP;
          }
        },
      });
    }
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([['A', names[0]], ...sides.some(side => side.has_tile) ? [['B', `${names[1]}, in shared memory`]] : [], ['C', names[2]],
      ['hot', 'used by this access'], ['hot', 'moved with it, and not used', MOVED]]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};
