// Two accumulator tiles on the left, the left operand of the next product on the right; each cell has the number of the
// lane that holds it. The chosen lane's cells are filled and have the name of their register.

const view = {
  start(ui, data) {
    const {sums, words, names} = data, SIDE = 16, HALF = 8, TOP = 40, LABEL = 24, APART = 10, ARROW = 70;
    const size = width => Math.max(9, Math.min(25, Math.floor((width - LABEL - APART - ARROW) / (2 * SIDE))));
    // of both pictures: each element's lane and register
    const grids = [sums, words].map((found, which) => {
      const grid = Array.from({length: SIDE * SIDE});
      for (let at = 0; at < found.length; at++) {
        const lane = at % 32, register = Math.floor(at / 32);
        if (which === 0) grid[found[at]] = {lane, name: 'c' + register % 4};
        else for (let i = 0; i < 2; i++) grid[2 * found[at] + i] = {lane, name: 'a' + register};
      }
      return grid;
    });
    const x_of = (which, column, s) => LABEL + column * s + (which ? SIDE * s + APART + (s > 9 ? ARROW : 38) : column >= HALF ? APART : 0);
    const canvas = ui.canvas({
      label: 'accumulators and left operand, each element with the lane that holds it', height: width => TOP + SIDE * size(width) + 8,
      paint(g, width) {
        const s = size(width);
        g.textBaseline = 'middle';
        grids.forEach((grid, which) => {
          g.textAlign = 'center';
          grid.forEach((cell, element) => {
            const row = Math.floor(element / SIDE), column = element % SIDE, on = cell.lane === ui.step;
            const x = x_of(which, column, s), y = TOP + row * s;
            g.fillStyle = on ? ui.colour(which ? 'A' : 'C') : ui.colour('cell');
            g.fillRect(x, y, s - 1, s - 1);
            g.fillStyle = on ? ui.ink(g.fillStyle) : ui.colour('dim');
            g.font = `${on ? '700 ' : ''}${Math.max(9, Math.min(11, s * 0.45))}px ui-monospace, Menlo, monospace`;
            g.fillText(on ? cell.name : cell.lane, x + (s - 1) / 2, y + s / 2);
          });
        });
        g.textAlign = 'left';
        g.font = `600 ${s < 16 ? 10 : 13}px system-ui, sans-serif`;
        g.fillStyle = ui.colour('fg');
        g.fillText(s < 16 ? `${names[0]}, tile 0` : `accumulators ${names[0]}, tile 0`, x_of(0, 0, s), 12);
        g.fillText('tile 1', x_of(0, HALF, s), 12);
        g.fillText(s < 16 ? `left operand ${names[1]}` : `left operand ${names[1]} of the next mma`, x_of(1, 0, s), 12);
        g.font = '11px ui-monospace, Menlo, monospace';
        g.fillStyle = ui.colour('dim');
        for (const which of [0, 1]) [0, HALF].forEach(column => g.fillText(column, x_of(which, column, s), 30));
        for (let row = 0; row < SIDE; row += 4) g.fillText(row, 2, TOP + (row + 0.5) * s);
        const from = x_of(0, SIDE - 1, s) + s + 8, to = x_of(1, 0, s) - 8, y = TOP + HALF * s;
        g.strokeStyle = ui.colour('fg');
        g.lineWidth = 2;
        g.beginPath();
        g.moveTo(from, y); g.lineTo(to, y);
        g.moveTo(to - 7, y - 5); g.lineTo(to, y); g.lineTo(to - 7, y + 5);
        g.stroke();
        g.textAlign = 'center';
        g.fillStyle = ui.colour('fg');
        g.fillText('pack2', (from + to) / 2, y - 12);
      },
    });
    canvas.style.cursor = 'pointer';
    canvas.onclick = event => {
      const s = size(canvas.clientWidth), row = Math.floor((event.offsetY - TOP) / s);
      grids.forEach((grid, which) => grid.forEach((cell, element) => {
        const x = x_of(which, element % SIDE, s);
        if (row === Math.floor(element / SIDE) && event.offsetX >= x && event.offsetX < x + s) ui.go(cell.lane);
      }));
    };
    ui.legend([['C', 'scores that the lane holds'], ['A', 'elements that the next product takes from it'], ['cell', "another lane's: its number"]]);
    return null;
  },
};
