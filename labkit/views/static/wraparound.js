// The image with a frame around a tile, all outputs of the tile's circular correlation, the stained ones vermilion and
// crossed out, and beside them what is kept of all tiles so far. The pointer on the outputs, or two sliders, choose the
// output whose window is drawn on the image: what leaves the tile comes back on its other side.

const view = {
  start(ui, data) {
    const {images, steps, stats} = data;
    const HEAD = 22, TALLEST = 300;
    const pictures = ui.element('div', {class: 'row'}, ui.body);
    const parent = ui.element('div', {}, pictures), middle = ui.element('div', {}, pictures);
    const right = ui.element('div', {}, pictures);
    let p = Infinity, q = Infinity;   // the chosen output; beyond the tile: its last
    const extent = (step, axis) => Math.max(images[step.image].shape[axis], step.frame[axis] + step.frame[2]);
    const most = axis => Math.max(...steps.map(step => extent(step, axis)));
    const ROWS = most(0), COLUMNS = most(1), SIDE = Math.max(...steps.map(step => step.frame[2]));
    const rooms = width => width < 640 ? [width, width, width] : [0.36, 0.26, 0.36].map(share => share * width - 14);
    const now = () => steps[ui.step];
    const cell = (room, rows, columns, tall = TALLEST) => Math.max(2, Math.floor(Math.min(20, room / columns, tall / rows)));
    const side = width => cell(width, SIDE + 1, SIDE);   // of a cell of the circular plane
    function shared(width, rows, columns, tall) {   // one size in all pictures where the image is no larger than the tile
      const s = cell(width, rows, columns, tall);
      return rows <= SIDE && columns <= SIDE ? Math.min(s, side(rooms(ui.body.clientWidth)[1])) : s;
    }
    const tall = width => ROWS * shared(width, ROWS, COLUMNS);   // of the image's canvas, whichever image it shows

    function title(g, text, colour) {
      g.textAlign = 'left';
      g.font = '600 13px ui-monospace, Menlo, monospace';
      ui.name(g, text, 0, 14, colour);
    }
    function draw(g, values, s, top, look) {   // look(row, column, share): colour and strength, or null for nothing yet
      const [rows, columns] = values.shape, gap = s > 6 ? 1 : 0;
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) {
          const x = column * s, y = top + row * s, found = look(row, column);
          g.fillStyle = ui.colour('cell');
          g.fillRect(x, y, s - gap, s - gap);
          if (!found) continue;
          g.fillStyle = ui.colour(found, 0.2 + 0.75 * values[row * columns + column]);
          g.fillRect(x, y, s - gap, s - gap);
          if (found !== 'hot' || s < 5) continue;
          g.strokeStyle = ui.colour('hot');
          g.lineWidth = 1.2;
          g.beginPath();   // crossed out, for those who see no difference of colour
          g.moveTo(x + 1, y + s - gap - 1);
          g.lineTo(x + s - gap - 1, y + 1);
          g.stroke();
        }
      }
    }
    function frame(g, s, top, [row, column, rows, columns], colour = 'ink', width = 2) {
      g.strokeStyle = ui.colour(colour);
      g.lineWidth = width;
      g.strokeRect(column * s + 1, top + row * s + 1, columns * s - 2, rows * s - 2);
    }

    // pieces of the window of the chosen output, [first, count, has come round] along an axis of the tile
    const pieces = (first, taps, T) => first + taps <= T ? [[first, taps, false]] : [[first, T - first, false], [0, first + taps - T, true]];
    function chosen() {
      const {frame: [, , T]} = now();
      return [Math.min(p, T - 1), Math.min(q, T - 1)];
    }
    ui.canvas({
      label: 'the image, with frames around the tile and the window of the chosen output', parent,
      maxWidth: width => rooms(width)[0],
      height: width => HEAD + tall(width) + 2,
      paint(g, width) {
        const {image, frame: [row, column, T], filter} = now(), x = images[image], [first, second] = chosen();
        const s = shared(width, extent(now(), 0), extent(now(), 1), tall(width));
        title(g, 'image x, and the tile', 'A');
        for (let i = 0; i < T * T; i++) {   // zeros where the tile is larger than the image
          g.fillStyle = ui.colour('cell');
          g.fillRect((column + i % T) * s, HEAD + (row + Math.floor(i / T)) * s, s - (s > 6 ? 1 : 0), s - (s > 6 ? 1 : 0));
        }
        draw(g, x, s, HEAD, () => 'A');
        frame(g, s, HEAD, [row, column, T, T], 'ink', 3);
        for (const [i, rows, under] of pieces(first, filter.shape[0], T)) {
          for (const [j, columns, beyond] of pieces(second, filter.shape[1], T)) {
            frame(g, s, HEAD, [row + i, column + j, rows, columns], under || beyond ? 'hot' : 'B', 3);
          }
        }
      },
    });
    const outputs = ui.canvas({
      label: 'all outputs of the tile, the stained ones crossed out', parent: middle,
      maxWidth: width => rooms(width)[1],
      height: width => HEAD + SIDE * side(width) + 2,
      paint(g, width) {
        const {plane, stained, tile: [, , rows, columns]} = now(), s = side(width);
        title(g, 'circular, all of the tile', 'C');
        draw(g, plane, s, HEAD, (row, column) => stained[row * plane.shape[1] + column] ? 'hot' : 'C');
        frame(g, s, HEAD, [0, 0, rows, columns]);
        frame(g, s, HEAD, [...chosen(), 1, 1], 'B', 3);
      },
    });
    outputs.style.cursor = 'crosshair';
    outputs.style.touchAction = 'none';
    outputs.addEventListener('pointermove', event => {
      const s = side(outputs.clientWidth), [row, column] = [Math.floor((event.offsetY - HEAD) / s), Math.floor(event.offsetX / s)];
      if (row >= 0 && row < now().frame[2] && column >= 0 && column < now().frame[2]) { [p, q] = [row, column]; ui.go(ui.step); }
    });
    ui.canvas({
      label: 'the outputs that are kept', parent: right,
      maxWidth: width => rooms(width)[2],
      height: width => HEAD + tall(width) + 2,
      paint(g, width) {
        const {y, y_stained, tile, frame: [top, left], step} = now();
        const s = shared(width, extent(now(), 0), extent(now(), 1), tall(width));
        const last = [Math.floor(top / step[0]), Math.floor(left / step[1])];
        title(g, 'kept: y', 'C');
        draw(g, y, s, HEAD, (row, column) => {
          const i = Math.floor(row / step[0]), j = Math.floor(column / step[1]);
          const isThere = i < last[0] || (i === last[0] && j <= last[1]);
          return !isThere ? null : y_stained[row * y.shape[1] + column] ? 'hot' : 'C';
        });
        frame(g, s, HEAD, tile);
      },
    });
    const sliders = ui.element('div', {class: 'sliders', style: 'margin-top:6px'}, ui.body);
    const inputs = [['row of the output', value => { p = value; }, 0], ['column of the output', value => { q = value; }, 1]].map(([name, set, axis]) => {
      const label = ui.element('label', {class: 'slider'}, sliders);
      ui.element('span', {class: 'name', text: name}, label);
      const input = ui.element('input', {type: 'range', min: 0, max: SIDE - 1, 'aria-label': name}, label);
      const shown = ui.element('output', {class: 'num'}, label);
      input.oninput = () => { set(Number(input.value)); ui.go(ui.step); };
      return () => { [input.value, shown.textContent] = [chosen()[axis], chosen()[axis]]; };
    });
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([['A', 'pixels'], ['C', 'the true output'], ['hot', 'stained: something else'], ['ink', 'the tile, and what is kept of it', 'outline'],
      ['B', 'the chosen output and its window', 'outline'], ['hot', 'what has come round', 'outline']]);
    return step => {
      inputs.forEach(show => show());
      numbers.forEach((show, i) => show(stats.values[step][i]));
    };
  },
};
