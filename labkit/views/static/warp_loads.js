// A left, B above, C where they meet, for each run: what one warp uses now, what moves with it, and what it used before.

const view = {
  start(ui, data) {
    const {panels, sides, stats} = data, GAP = 2, HEAD = 15;
    const [rows, depth] = panels[0].shape, columns = panels[1].shape[1];
    const across = depth + GAP + columns, down = depth + GAP + rows;
    const corners = [[depth + GAP, 0], [0, depth + GAP], [depth + GAP, depth + GAP]], roles = ['A', 'B', 'C'];
    const sheet = ui.element('div', {class: 'row'}, ui.body);

    // of each element: the step of its first use or move, and for each step the elements of that step
    function replay(packed) {
      const first = panels.map(({shape}) => new Int32Array(shape[0] * shape[1]).fill(1e9)), now = new Map();
      for (let i = 0; i < packed.length; i += 3) {
        const [step, matrix, element] = packed.subarray(i, i + 3);
        first[matrix][element] = Math.min(first[matrix][element], step);
        if (!now.has(step)) now.set(step, []);
        now.get(step).push([matrix, element]);
      }
      return {first, now};
    }
    for (const side of sides) {
      const used = replay(side.used), moved = replay(side.moved), outputs = new Set(side.outputs);
      const box = ui.element('div', {style: 'flex:1 1 300px;min-width:0'}, sheet);
      ui.element('b', {text: side.name}, box);
      const room = all => sides.length * 320 > all ? Math.min(all, 470) : Math.floor((all - 22 * (sides.length - 1)) / sides.length);
      // at most 350 high, so that sliders above it and the picture are seen together
      const size = width => Math.max(1, Math.min(9, Math.floor(width / across), Math.max(4, Math.floor(350 / down))));
      ui.canvas({
        label: `${side.name}: what the warp loads of ${panels[0].name} and ${panels[1].name}`, parent: box,
        maxWidth: room, height: width => size(width) * down + HEAD,
        paint(g, width) {
          const s = size(width), gap = s > 3 ? 1 : 0;
          const at = (matrix, element) => {
            const [top, left] = corners[matrix], wide = panels[matrix].shape[1];
            return [(left + element % wide) * s, HEAD + (top + Math.floor(element / wide)) * s];
          };
          const fill = (matrix, element, colour) => {
            g.fillStyle = colour;
            g.fillRect(...at(matrix, element), s - gap, s - gap);
          };
          g.font = '600 12px system-ui, sans-serif';
          panels.forEach(({name, shape}, matrix) => {
            const [top, left] = corners[matrix];
            g.fillStyle = ui.colour('fg');
            g.fillText(name, left * s, HEAD + top * s - 4);
            const role = roles[matrix], tones = [0.1, 0.28, 0.45, 0.6].map(alpha => ui.colour(role, alpha));
            for (let element = 0; element < shape[0] * shape[1]; element++) {
              const before = used.first[matrix][element] <= ui.step ? 3 : matrix === 2 && outputs.has(element) ? 2
                : data.sectors && moved.first[matrix][element] <= ui.step ? 1 : 0;
              fill(matrix, element, tones[before]);
            }
          });
          for (const [matrix, element] of data.sectors ? moved.now.get(ui.step) ?? [] : []) {
            fill(matrix, element, ui.colour('card'));   // else its matrix's colour would shine through
            fill(matrix, element, ui.colour('hot', 0.35));
          }
          for (const [matrix, element] of used.now.get(ui.step) ?? []) fill(matrix, element, ui.colour('hot'));
        },
      });
    }
    const numbers = stats.labels.map(label => ui.stat(label));
    const moves = data.sectors ? [['hot', 'moves with it and is not used now', 0.35]] : [];
    ui.legend([['hot', 'used now'], ...moves, ['A', 'used before, of A', 0.6], ['B', 'of B', 0.6], ['C', 'elements of C that this warp computes', 0.45]]);
    return step => stats.values[step].forEach((value, i) => numbers[i](value));
  },
};
