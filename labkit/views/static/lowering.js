// Images, and next to them their lowered matrix. By mode, a step marks a pixel and its copies, an output's column and
// its window, or a tile that is made of a matrix that does not exist (step 0: that does). Below, the bytes of each, and
// where data.law is given, the matrix's size over the side of the filter, with this run as a dot.

const view = {
  start(ui, data) {
    const {image, matrix, mode, place, tile, bytes, stats, law} = data;
    const HEAD = 34, GAP = 8, TALLEST = 300, [rows, columns] = image.sides, plane = rows * columns;
    const tiles = tile.corners.length / 2, pixels = image.planes[0] * image.planes[1] * plane;
    const shade = pixel => 0.25 + 0.55 * (pixel % plane) / plane;
    const now = () => {   // the tile of this step, or null
      if (mode !== 'tile' || !ui.step) return null;
      const at = 2 * (ui.step - 1);
      return {top: tile.corners[at], left: tile.corners[at + 1]};
    };
    const inside = (corner, row, column) => row >= corner.top && row < corner.top + tile.sides[0] &&
      column >= corner.left && column < corner.left + tile.sides[1];
    const side = (across, down, gaps, width) => Math.max(1, Math.min(24, Math.floor((width - gaps[0] * GAP) / across),
      Math.floor((TALLEST - gaps[1] * GAP) / down)));
    const ofImage = width => side(image.planes[1] * columns, image.planes[0] * rows, [image.planes[1] - 1, image.planes[0] - 1], width);
    const [rowBreaks, columnBreaks] = matrix.breaks;
    const EDGE = 2;   // for a frame around the first column
    const ofMatrix = width => side(matrix.columns, matrix.rows, [columnBreaks.length, rowBreaks.length], width - 2 * EDGE);
    const shift = (breaks, i) => GAP / 2 * breaks.filter(first => first <= i).length;

    function title(g, name, below, colour) {
      g.textAlign = 'left';
      g.font = '600 13px ui-monospace, Menlo, monospace';
      ui.name(g, name, 0, 12, colour);
      g.font = '12px system-ui, sans-serif';
      g.fillStyle = ui.colour('dim');
      g.fillText(below, 0, 27, g.canvas.clientWidth);
    }
    function cell(g, x, y, s, pixel, hot) {
      g.fillStyle = ui.colour('cell');
      g.fillRect(x, y, s - (s > 5), s - (s > 5));
      if (pixel < 0 && !hot) {
        if (s < 9) return;
        g.font = `${Math.min(12, s * 0.7)}px system-ui, sans-serif`;
        g.textAlign = 'center';
        g.fillStyle = ui.colour('dim');
        g.fillText('0', x + (s - 1) / 2, y + s * 0.72);
        return;
      }
      g.fillStyle = hot ? ui.colour('hot') : ui.colour('A', shade(pixel));
      g.fillRect(x, y, s - (s > 5), s - (s > 5));
    }
    const imageAt = (s, pixel) => {
      const p = Math.floor(pixel / plane), row = Math.floor(pixel % plane / columns), column = pixel % columns;
      return [p % image.planes[1] * (columns * s + GAP) + column * s, HEAD + Math.floor(p / image.planes[1]) * (rows * s + GAP) + row * s];
    };
    function drawImage(g, s) {
      title(g, image.name, (image.planes[0] * image.planes[1] > 1 ? image.planes.join(' x ') + ' planes of ' : 'one plane of ') + rows + ' x ' + columns, 'A');
      const corner = now(), held = new Set();
      if (corner) place.forEach((pixel, i) => { if (inside(corner, Math.floor(i / matrix.columns), i % matrix.columns)) held.add(pixel); });
      else if (mode === 'pixel') held.add(ui.step);
      else if (mode === 'output') for (let row = 0; row < matrix.rows; row++) held.add(place[row * matrix.columns + ui.step]);
      for (let pixel = 0; pixel < pixels; pixel++) cell(g, ...imageAt(s, pixel), s, pixel, held.has(pixel));
    }
    const matrixAt = (s, row, column) => [EDGE + column * s + shift(columnBreaks, column), HEAD + row * s + shift(rowBreaks, row)];
    function drawMatrix(g, s) {
      const corner = now(), size = matrix.rows + ' taps x ' + matrix.columns + ' outputs';
      title(g, corner ? tile.name : matrix.name, corner ? 'a tile of ' + size + ' that are never stored' : size, corner ? 'C' : 'A');
      for (let row = 0; row < matrix.rows; row++) {
        for (let column = 0; column < matrix.columns; column++) {
          const [x, y] = matrixAt(s, row, column), pixel = place[row * matrix.columns + column];
          if (!corner) cell(g, x, y, s, pixel, mode === 'pixel' ? pixel === ui.step : mode === 'output' && column === ui.step && pixel >= 0);
          else if (inside(corner, row, column)) cell(g, x, y, s, pixel, pixel >= 0);
          else { g.strokeStyle = ui.colour('line'); g.lineWidth = 1; if (s > 5) g.strokeRect(x + 0.5, y + 0.5, s - 2, s - 2); else cell(g, x, y, s, -1, false); }
        }
      }
      const framed = corner ? [corner.top, corner.left, corner.top + tile.sides[0], corner.left + tile.sides[1]]
        : mode === 'output' ? [0, ui.step, matrix.rows, ui.step + 1] : null;
      if (framed) {
        const [x, y] = matrixAt(s, framed[0], framed[1]);
        const [x1, y1] = matrixAt(s, Math.min(matrix.rows, framed[2]) - 1, Math.min(matrix.columns, framed[3]) - 1);
        g.strokeStyle = ui.colour('ink');
        g.lineWidth = 2;
        g.strokeRect(x - 1.5, y - 1.5, x1 - x + s + 2, y1 - y + s + 2);
      }
    }

    const pictures = ui.element('div', {class: 'row'}, ui.body);
    const left = ui.element('div', {}, pictures), right = ui.element('div', {style: 'min-width:0'}, pictures);
    const narrow = width => width < 640;
    const roomLeft = width => narrow(width) ? width : Math.round(width * 0.3);
    const widthOfImage = width => { const s = ofImage(roomLeft(width)); return Math.max(150, image.planes[1] * (columns * s + GAP) - GAP + 2); };
    const first = ui.canvas({
      label: `${image.name}: the chosen pixel, or those of the column or tile`, parent: left,
      maxWidth: width => Math.min(width, widthOfImage(width)),
      height: width => HEAD + image.planes[0] * (rows * ofImage(width) + GAP),
      paint(g, width) { drawImage(g, ofImage(width)); },
    });
    const second = ui.canvas({
      label: `${matrix.name}: copies of the chosen pixel, a column, or the tile that is made`, parent: right,
      maxWidth: width => narrow(width) ? width : width - widthOfImage(width) - 30,
      height: width => HEAD + matrix.rows * ofMatrix(width) + rowBreaks.length * GAP / 2 + 4,
      paint(g, width) { drawMatrix(g, ofMatrix(width)); },
    });
    const under = (canvas, event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top, box.width]; };
    const hit = (x, y, at, s) => x >= at[0] && x < at[0] + s && y >= at[1] && y < at[1] + s;
    const of = {   // the step that a click chooses, by mode: of a pixel, and of an element of the matrix
      pixel: [pixel => pixel, element => place[element]],
      output: [pixel => place.indexOf(pixel) % matrix.columns, element => element % matrix.columns],
      tile: [() => -1, element => {
        const row = Math.floor(element / matrix.columns), column = element % matrix.columns;
        for (let n = 0; n < tiles; n++) if (inside({top: tile.corners[2 * n], left: tile.corners[2 * n + 1]}, row, column)) return n + 1;
        return -1;
      }],
    }[mode];
    const choose = step => { if (step >= 0) ui.go(step); };
    first.addEventListener('click', event => {
      const [x, y, width] = under(first, event), s = ofImage(width);
      for (let pixel = 0; pixel < pixels; pixel++) if (hit(x, y, imageAt(s, pixel), s)) choose(of[0](pixel));
    });
    second.addEventListener('click', event => {
      const [x, y, width] = under(second, event), s = ofMatrix(width);
      place.forEach((_, i) => {
        if (hit(x, y, matrixAt(s, Math.floor(i / matrix.columns), i % matrix.columns), s)) choose(of[1](i));
      });
    });

    if (law) ui.canvas({
      parent: ui.element('div', {style: 'margin-top:10px'}, right), maxWidth: width => Math.min(width, 320), height: () => 150,
      label: `size of the matrix, relative to the images, over the side R of the filter: ${law.factors[law.at[0]][law.at[1]]} here`,
      paint(g, width, tall) {
        const LEFT = 38, RIGHT = 88, TOP = 20, BOTTOM = 18, {sides, factors, scale, at} = law;
        const x = side => LEFT + (width - LEFT - RIGHT) * (sides.length > 1 ? (side - sides[0]) / (sides.at(-1) - sides[0]) : 0.5);
        const y = factor => TOP + (tall - TOP - BOTTOM) * Math.log(scale[1] / factor) / Math.log(scale[1] / scale[0]);
        const write = (text, left, top, align, colour = 'dim') => { g.textAlign = align; g.fillStyle = ui.colour(colour); g.fillText(text, left, top); };
        g.font = '600 12px system-ui, sans-serif';
        write('matrix, relative to images', 0, 11, 'left', 'fg');
        g.font = '11px system-ui, sans-serif';
        for (const tick of law.ticks) {
          g.fillStyle = ui.colour('line');
          g.fillRect(LEFT, y(tick) - 0.5, width - LEFT - RIGHT, 1);
          write(`${tick}x`, LEFT - 8, y(tick) + 4, 'right');
        }
        sides.forEach((side, i) => write(i ? side : `R = ${side}`, x(side) + (i ? 0 : 4), tall - 4, i ? 'center' : 'right'));
        factors.forEach((curve, s) => {
          g.strokeStyle = ui.colour(s === at[0] ? 'D' : 'dim');
          g.lineWidth = s === at[0] ? 2 : 1.2;
          g.setLineDash(s === at[0] ? [] : [4, 3]);
          g.beginPath();
          curve.forEach((factor, i) => g.lineTo(x(sides[i]), y(factor)));
          g.stroke();
        });
        for (const [end, named] of law.ends) write(named, x(sides.at(-1)) + 9, y(end) + 4, 'left', end === factors[at[0]].at(-1) ? 'fg' : 'dim');
        g.setLineDash([]);
        const factor = factors[at[0]][at[1]], [left, top] = [x(sides[at[1]]), y(factor)];
        g.fillStyle = ui.colour('D');
        g.beginPath();
        g.arc(left, top, 5, 0, 2 * Math.PI);
        g.fill();
        g.font = '600 12px system-ui, sans-serif';
        const text = labkitFixed(factor, 2) + 'x', room = g.measureText(text).width;
        const from = Math.max(LEFT + 2, left - 9 - room);
        g.fillStyle = ui.colour('card', 0.85);
        g.fillRect(from - 2, top - 19, room + 4, 14);
        write(text, from, top - 8, 'left', 'fg');
      },
    });

    const LINE = 20, WORDS = 190, meters = ['images', 'matrix', ...(tiles ? ['tile'] : [])];
    const names = {images: 'images, in memory', matrix: 'matrix, in memory', tile: 'tile, in shared memory'};
    const most = data.meter;
    ui.canvas({
      label: 'a meter of bytes: ' + meters.map(name => `${names[name]} ${bytes[name]}`).join(', '),
      height: () => meters.length * LINE + 8,
      paint(g, width) {
        const corner = now();
        meters.forEach((name, i) => {
          const there = name === 'images' || (name === 'tile') === !!corner, size = there ? bytes[name] : 0, y = 8 + i * LINE;
          const room = width - WORDS - 90, of = part => Math.round(room * part / most);
          g.font = '12px system-ui, sans-serif';
          g.textAlign = 'left';
          g.fillStyle = ui.colour('dim');
          g.fillText(names[name], 0, y + 12);
          g.strokeStyle = ui.colour('line');
          g.lineWidth = 1;
          g.strokeRect(WORDS + 0.5, y + 2.5, Math.max(1, of(bytes[name])), 11);
          g.fillStyle = ui.colour({images: 'A', matrix: 'D', tile: 'C'}[name]);
          if (size) g.fillRect(WORDS, y + 2, Math.max(2, of(size)), 12);
          g.fillStyle = ui.colour('fg');
          g.fillText(size.toLocaleString('en') + ' B', WORDS + of(bytes[name]) + 8, y + 12);
        });
      },
    });
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([['A', 'a pixel, stronger the farther down its plane', 0.6], ['hot', {pixel: 'chosen', output: 'in the window', tile: 'in the tile'}[mode]],
      ...(place.includes(-1) ? [['cell', 'a zero of the padding']] : []),
      ...(tiles ? [['line', 'not stored', 'outline']] : [])]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};
