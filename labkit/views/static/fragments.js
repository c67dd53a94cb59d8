// A left, B above, C where they meet; every register has the number of the lane that holds it, the chosen lane's are filled.
const view = {
  start(ui, data) {
    const {k, each, held, words, arrays, choices} = data, ROWS = 16, COLS = 8;
    const names = Object.keys(choices);
    if (names.length > 1) {
      const label = ui.element('label', {text: 'format '}, ui.body);
      const select = ui.element('select', {}, label);
      for (const name of names) ui.element('option', {text: name}, select);
      select.value = data.name;
      select.onchange = () => {
        ui.replace({title: data.title, choices, ...choices[select.value]});
        ui.root.querySelector('select').focus();
      };
    }
    // of each matrix: where every cell's lane and register are, as it is drawn (B turned)
    const shapes = [[ROWS, k], [k, COLS], [ROWS, COLS]];
    const cells = shapes.map(([rows, columns], which) => {
      const grid = Array.from({length: rows * columns}), width = which === 2 ? COLS : words;
      for (let at = 0; at < held[which].length; at++) {
        const lane = at % 32, register = Math.floor(at / 32), flat = held[which][at];
        for (let i = 0; i < each[which]; i++) {
          const row = Math.floor(flat / width), column = flat % width * each[which] + i;
          grid[which === 1 ? column * columns + row : row * columns + column] = {lane, name: 'abc'[which] + register};
        }
      }
      return grid;
    });
    const LEFT = 26, TOP = 36, GAP = 18, COLOURS = ['A', 'B', 'C'];
    // a word of A or B is twice as long along k as its row is high, in every format
    const deep = 2 * words, size = width => Math.max(9, Math.min(24, Math.floor(Math.min((width - LEFT - GAP) / (deep + COLS), 580 / (deep + ROWS)))));
    const along = s => 2 * s / each[0], steps = (which, s) => [which === 0 ? along(s) : s, which === 1 ? along(s) : s];   // of an element, right and down
    const corner = (which, s) => [which === 0 ? LEFT : LEFT + deep * s + GAP, which === 1 ? TOP : TOP + deep * s + GAP];
    const canvas = ui.canvas({
      label: 'the elements of A, B and C, each with the lane that holds it', height: width => TOP + (deep + ROWS) * size(width) + GAP + 4,
      paint(g, width) {
        const s = size(width), small = Math.max(9, Math.min(11, s * 0.5));
        g.textBaseline = 'middle';
        cells.forEach((grid, which) => {
          const [x, y] = corner(which, s), [rows, columns] = shapes[which], [right, down] = steps(which, s);
          const wide = which === 0 ? each[0] : 1, tall = which === 1 ? each[1] : 1;   // cells of a register
          g.textAlign = 'center';
          for (let row = 0; row < rows; row += tall) {
            for (let column = 0; column < columns; column += wide) {
              const cell = grid[row * columns + column], on = cell.lane === ui.step;
              const left = x + column * right, top = y + row * down, w = wide * right - 1, h = tall * down - 1;
              g.fillStyle = on ? ui.colour(COLOURS[which]) : ui.colour('cell');
              g.fillRect(left, top, w, h);
              g.fillStyle = ui.colour('card', 0.45);   // between the elements of a register, but not through its name
              for (let i = 1; i < wide; i++) [top, top + h * 0.8].forEach(from => g.fillRect(left + i * right - 1, from, 1, h * 0.2));
              for (let i = 1; i < tall; i++) [left, left + w * 0.8].forEach(from => g.fillRect(from, top + i * down - 1, w * 0.2, 1));
              g.fillStyle = on ? ui.ink(ui.colour(COLOURS[which])) : ui.colour('dim');
              g.font = `${on ? '700 ' : ''}${Math.max(w, h) > 20 ? Math.max(small, 10) : small}px ui-monospace, Menlo, monospace`;
              g.fillText(on ? cell.name : cell.lane, left + w / 2, top + h / 2);
            }
          }
          g.textAlign = 'left';
          g.font = '600 13px system-ui, sans-serif';
          g.fillStyle = ui.colour('fg');
          const title = which === 1 ? `${arrays[1]}.T` : arrays[which];
          if (which === 2) g.fillText(title, x + COLS * s + 6, y + 8);
          else g.fillText(`${title}, ${shapes[which].join(' x ')}`, x, y - 10);
        });
        const [left, top] = [LEFT, TOP], line = Math.min(19, (deep * s - 20) / 8);
        g.textAlign = 'left';
        g.font = '600 14px system-ui, sans-serif';
        g.fillStyle = ui.colour('fg');
        g.fillText(`lane ${ui.step}`, left, top);
        g.font = `${Math.min(12.5, line * 0.75)}px ui-monospace, Menlo, monospace`;
        const row = data.table.rows[ui.step].slice(1, 7);
        row.forEach((text, i) => {
          g.fillStyle = ui.colour(i < 4 ? 'A' : 'B');
          g.fillRect(left, top + (i + 1.1) * line - 4, 8, 8);
          g.fillStyle = ui.colour('fg');
          g.fillText(`${i < 4 ? 'a' + i : 'b' + (i - 4)} = ${text}`, left + 14, top + (i + 1.1) * line, deep * s - 14);
        });
      },
    });
    canvas.style.cursor = 'pointer';
    canvas.onclick = event => {
      const s = size(canvas.clientWidth);
      cells.forEach((grid, which) => {
        const [x, y] = corner(which, s), [rows, columns] = shapes[which], [right, down] = steps(which, s);
        const column = Math.floor((event.offsetX - x) / right), row = Math.floor((event.offsetY - y) / down);
        if (column >= 0 && column < columns && row >= 0 && row < rows) ui.go(grid[row * columns + column].lane);
      });
    };
    ui.legend([['A', "this lane's part of A"], ['B', 'of B'], ['C', 'of the accumulators'], ['cell', "another lane's: its number"]]);
    return null;
  },
};
