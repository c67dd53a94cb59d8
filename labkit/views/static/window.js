// The image, each pixel as strong as it has often been loaded; beside it the filters and the outputs. What the step
// touches is vermilion, and a frame is around what it loads of the image: its window, where that is known, which may
// reach into the zeros around the image. Tiles of several blocks have an outline each.

const view = {
  start(ui, data) {
    const {panels, ends, most, stats, frames, tiles, shared} = data;
    const HEAD = 20, GAP = 10, SPARSE = 8, colours = {x: 'A', w: 'B', y: 'C'};
    const touched = role => {   // how often each element was touched, and which the step touches
      const {planes, sides} = panels[role], counts = new Int32Array(planes[0] * planes[1] * sides[0] * sides[1]);
      const first = ui.step ? ends[role][ui.step - 1] : 0, last = ends[role][ui.step];
      for (let i = 0; i < last; i++) counts[data[role][i]]++;
      return {counts, now: new Set(data[role].slice(first, last))};
    };
    ui.root.style.setProperty('--tile', '#b8578f');
    const TILES = [['B', []], ['C', [7, 3]], ['tile', [10, 3, 2, 3]], ['ink', [2, 2]]];   // a colour and dashes for each
    const size = role => {   // rows and columns of a plane, with the zeros around it
      const {sides, rim: [top, bottom, left, right]} = panels[role];
      return [sides[0] + top + bottom, sides[1] + left + right];
    };
    const wide = (role, s) => panels[role].planes[1] * (size(role)[1] * s + GAP) - GAP;
    const tall = (role, s) => HEAD + panels[role].planes[0] * (size(role)[0] * s + GAP) - GAP;
    const TALLEST = {x: 400, w: 150, y: 260};   // all of it fits a screen
    const fit = (role, width) => {
      const {planes} = panels[role], sides = size(role);
      const across = (width - (planes[1] - 1) * GAP - 4) / (planes[1] * sides[1]);
      const down = (TALLEST[role] - (planes[0] - 1) * GAP) / (planes[0] * sides[0]);
      return Math.max(2, Math.floor(Math.min(role === 'x' ? 28 : planes[0] * planes[1] > 1 ? 15 : role === 'y' ? 26 : 22, across, down)));
    };
    const strength = {
      x: count => count ? 0.12 + 0.88 * Math.min(1, count / most) : 0,
      w: () => 0.4,
      y: count => count ? 0.8 : 0,
    };

    function draw(g, role, s, top) {
      const {name, planes, sides: [rows, columns], rim} = panels[role], {counts, now} = touched(role);
      const [height, width] = size(role);
      g.textAlign = 'left';
      g.font = '600 13px ui-monospace, Menlo, monospace';
      ui.name(g, name, 2, top + 13, colours[role]);
      g.textAlign = 'center';
      g.font = `${Math.min(12, s * 0.5)}px system-ui, sans-serif`;
      const gap = s > 5 ? 1 : 0;
      for (let plane = 0; plane < planes[0] * planes[1]; plane++) {
        const x1 = plane % planes[1] * (width * s + GAP) + 2, y1 = top + HEAD + Math.floor(plane / planes[1]) * (height * s + GAP);
        const x0 = x1 + rim[2] * s, y0 = y1 + rim[0] * s;
        const frame = [columns, rows, -1, -1];
        for (let i = 0; i < height * width && Math.max(...rim); i++) {   // the zeros around the image
          const row = Math.floor(i / width) - rim[0], column = i % width - rim[2];
          if (row >= 0 && row < rows && column >= 0 && column < columns) continue;
          g.strokeStyle = ui.colour('line');
          g.lineWidth = 1;
          g.strokeRect(x0 + column * s + 0.5, y0 + row * s + 0.5, s - gap - 1, s - gap - 1);
          g.fillStyle = ui.colour('dim');
          if (s >= 13) g.fillText('0', x0 + (column + 0.5) * s, y0 + (row + 0.66) * s);
        }
        for (let i = 0; i < rows * columns; i++) {
          const element = plane * rows * columns + i, count = counts[element], hot = now.has(element);
          const column = i % columns, row = Math.floor(i / columns), x = x0 + column * s, y = y0 + row * s;
          const share = strength[role](count);
          g.fillStyle = ui.colour('cell');
          g.fillRect(x, y, s - gap, s - gap);
          if (share || hot) {
            g.fillStyle = hot ? ui.colour('hot') : ui.colour(colours[role], share);
            g.fillRect(x, y, s - gap, s - gap);
          }
          if (hot) {
            frame[0] = Math.min(frame[0], column); frame[1] = Math.min(frame[1], row);
            frame[2] = Math.max(frame[2], column); frame[3] = Math.max(frame[3], row);
          }
        }
        if (role !== 'x') continue;
        tiles.forEach(({block, box: [row, column, tall, wide]}, i) => {
          const [colour, dashes] = TILES[i], inset = 1 + 1.5 * i;
          g.strokeStyle = ui.colour(colour);
          g.lineWidth = 2.5;
          g.setLineDash(dashes);
          g.strokeRect(x0 + column * s + inset, y0 + row * s + inset, wide * s - 2 * inset - 1, tall * s - 2 * inset - 1);
          g.setLineDash([]);
        });
        for (let i = 0; i < rows * columns && s >= 15; i++) {   // numbers on top of the tiles' outlines
          const element = plane * rows * columns + i, count = counts[element], hot = now.has(element);
          if (!count) continue;
          const share = strength.x(count), x = x0 + i % columns * s + (s - gap) / 2, y = y0 + (Math.floor(i / columns) + 0.66) * s;
          if (tiles.length) {
            g.lineWidth = 4;
            for (const [under, alpha] of [['cell', 1], [hot ? 'hot' : 'A', hot ? 1 : share]]) {
              g.strokeStyle = ui.colour(under, alpha);
              g.strokeText(count, x, y);
            }
          }
          g.fillStyle = ui.ink(ui.colour('cell'), hot ? ui.colour('hot') : ui.colour('A', share));
          g.fillText(count, x, y);
        }
        const area = (frame[2] - frame[0] + 1) * (frame[3] - frame[1] + 1);
        if (frame[2] >= 0 && (frames || !shared && area <= SPARSE * now.size)) {   // none around pixels that are no window
          const [row, column, tall, wide] = frames ? frames.slice(4 * ui.step, 4 * ui.step + 4)
            : [frame[1], frame[0], frame[3] - frame[1] + 1, frame[2] - frame[0] + 1];
          g.strokeStyle = ui.colour('ink');
          g.lineWidth = 2;
          g.strokeRect(x0 + column * s - 1, y0 + row * s - 1, wide * s + 1, tall * s + 1);
        }
      }
    }

    const pictures = ui.element('div', {class: 'row'}, ui.body);
    const left = ui.element('div', {}, pictures), right = ui.element('div', {style: 'flex:1 1 240px;min-width:0;display:flex;flex-wrap:wrap;gap:10px 22px;align-items:flex-start'}, pictures);
    const room = width => width < 640 ? width : Math.round(width * 0.56);
    const image = width => fit('x', width);
    ui.canvas({
      label: `${panels.x.name}, each pixel by how often it has been loaded`, parent: left,
      maxWidth: width => Math.min(room(width), wide('x', image(room(width))) + 4),
      height: width => tall('x', image(width)) + 2,
      paint(g, width) { draw(g, 'x', image(width), 0); },
    });
    const others = ['w', 'y'].filter(role => panels[role]), right_room = width => width < 640 ? width : width - room(width) - 30;
    for (const role of others) {   // next to one another where there is room
      const cell = width => fit(role, width);
      ui.canvas({
        label: `${panels[role].name}, what is ${role === 'w' ? 'loaded' : 'stored'}`, parent: right,
        maxWidth: width => Math.min(right_room(width), wide(role, cell(right_room(width))) + 4),
        height: width => tall(role, cell(width)) + 2,
        paint(g, width) { draw(g, role, cell(width), 0); },
      });
    }
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([['hot', 'this step'], ['A', 'loaded once', Math.max(0.25, strength.x(1))], ['A', `loaded ${most} times`],
      ...(Math.max(...panels.x.rim) ? [['line', 'padding: zeros that are not stored', 'outline']] : []),
      ...others.map(role => role === 'w' ? ['B', 'filters', 0.6] : ['C', 'stored', 0.8]),
      ...tiles.map(({block}, i) => [TILES[i][0], `tile of block ${block}`, 'outline'])]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};
