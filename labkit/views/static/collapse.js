// The image with its tile; the products of the tile's outputs as they are defined, and those of its transformed pixels,
// in cells of one size; the outputs. A choice above changes how the image is cut up.

const view = {
  start(ui, data) {
    const {sides, steps, stats} = data, PIXELS = 0, TRANSFORMED = 1, MULTIPLIED = 2, MOST_SINGLE = 4;
    const [[H, W], [R, S], [P, Q], [rows, columns], [tall, wide]] = ['x', 'w', 'y', 'out', 'tile'].map(name => sides[name]);
    const across = Math.ceil(Q / columns), down = Math.ceil(P / rows), HEAD = 20, places = tall * wide;

    if (data.kept.length > 1) ui.menu('tiles', data.kept.map(({name}) => name), data, i => ({...data.kept[i], kept: data.kept}));

    const now = () => {
      const [number, shown, stage] = steps.slice(3 * ui.step, 3 * ui.step + 3);
      return {number, shown, stage, row: Math.floor(number / across) * rows, column: number % across * columns};
    };
    function cell(g, x, y, s, colour, share = 1, value = null) {
      const gap = s > 5 ? 1 : 0;
      g.fillStyle = ui.colour('cell');
      g.fillRect(x, y, s - gap, s - gap);
      if (colour) {
        g.fillStyle = ui.colour(colour, share);
        g.fillRect(x, y, s - gap, s - gap);
      }
      if (value === null || s < 30) return;
      g.textAlign = 'center';
      g.font = `${Math.min(11, s * 0.28)}px system-ui, sans-serif`;
      g.fillStyle = ui.ink(ui.colour('cell'), ...colour ? [ui.colour(colour, share)] : []);
      g.fillText(labkitFixed(value, value <= -9.995 || value >= 99.95 ? 1 : 2), x + (s - gap) / 2, y + s * 0.6);
    }
    function head(g, text, colour, y = 13) {
      g.textAlign = 'left';
      g.font = '600 13px system-ui, sans-serif';
      if ('ABC'.includes(colour)) { ui.name(g, text, 0, y, colour); return; }
      g.fillStyle = ui.colour(colour);
      g.fillText(text, 0, y);
    }
    function frame(g, x, y, width, height) {
      g.strokeStyle = ui.colour('ink');
      g.lineWidth = 2;
      g.strokeRect(x, y, width, height);
    }

    const row = ui.element('div', {class: 'row', style: 'flex-wrap:wrap'}, ui.body);
    const panel = (label, width, height, paint) => ui.canvas({
      label, parent: ui.element('div', {style: `flex:0 1 ${width}px`}, row),
      maxWidth: all => Math.min(width, all), height: () => height, paint,
    });

    // the image, as far as tiles reach
    const [high, broad] = [(down - 1) * rows + tall, (across - 1) * columns + wide];
    const pixel = Math.floor(Math.min(26, 230 / Math.max(high, broad, 9)));
    panel('x, the image, with the pixels of this tile', broad * pixel + 4, HEAD + high * pixel + 26 + R * 20 + 4, g => {
      const {row, column} = now();
      head(g, 'x, the image', 'A');
      for (let i = 0; i < high; i++) {
        for (let j = 0; j < broad; j++) {
          const there = i < H && j < W, here = i >= row && i < row + tall && j >= column && j < column + wide;
          cell(g, 1 + j * pixel, HEAD + i * pixel, pixel, !there ? null : here ? 'hot' : 'A', here ? 0.8 : 0.35);
        }
      }
      frame(g, column * pixel, HEAD + row * pixel - 1, wide * pixel + 1, tall * pixel + 1);
      const under = HEAD + high * pixel + 6;
      head(g, 'w, the filter', 'B', under + 13);
      for (let i = 0; i < R * S; i++) cell(g, 1 + i % S * 20, under + HEAD + Math.floor(i / S) * 20, 20, 'B', 0.5);
    });

    // products: both ways in cells of one size
    const GAP = 6, size = Math.floor(Math.min(40, (280 - (columns - 1) * GAP) / (columns * S)));
    const block = [rows * R * size + (rows - 1) * GAP, columns * S * size + (columns - 1) * GAP];
    panel('products of this tile as they are defined', Math.max(190, block[1] + 2), HEAD + block[0] + 2, g => {
      const {shown, stage, row, column} = now();
      let output = 0, count = 0;
      for (let p = 0; p < rows; p++) {
        for (let q = 0; q < columns; q++) {
          const there = row + p < P && column + q < Q;
          if (there) output++;
          const done = there && output <= shown, latest = output === shown || stage !== PIXELS || shown > MOST_SINGLE;
          for (let r = 0; r < R; r++) {
            for (let s = 0; s < S; s++) {
              const value = data.x[(row + p + r) * W + column + q + s] * data.w[r * S + s];
              const [x, y] = [(q * S + s) * size + q * GAP, HEAD + (p * R + r) * size + p * GAP];
              if (done) { cell(g, x, y, size, 'hot', latest ? 0.8 : 0.4, value); count++; }
              else cell(g, x, y, size, null);
            }
          }
        }
      }
      head(g, `as defined: ${count} products`, 'hot-text');
    });
    panel('products of this tile when it is transformed', Math.max(210, wide * size + 2), HEAD + tall * size + 2, g => {
      const {number, stage} = now(), counted = stage >= MULTIPLIED ? `${places} products` : stage ? 'sums of pixels' : '';
      for (let i = 0; i < places; i++) {
        const [x, y] = [i % wide * size, HEAD + Math.floor(i / wide) * size];
        if (stage === PIXELS) cell(g, x, y, size, null);
        else if (stage === TRANSFORMED) cell(g, x, y, size, 'A', 0.6, data.V[number * places + i]);
        else cell(g, x, y, size, 'hot', 0.8, data.M[number * places + i]);
      }
      head(g, counted ? `transformed: ${counted}` : 'transformed', stage === TRANSFORMED ? 'A' : 'hot-text');
    });
    const result = Math.floor(Math.min(20, 150 / Math.max(P, Q, 7)));
    panel('y, the outputs', Math.max(110, Q * result + 2), HEAD + P * result + 2, g => {
      const {number, stage, row, column} = now();
      head(g, 'y, the outputs', 'C');
      for (let p = 0; p < P; p++) {
        for (let q = 0; q < Q; q++) {
          const of = Math.floor(p / rows) * across + Math.floor(q / columns);
          cell(g, 1 + q * result, HEAD + p * result, result, of < number || (of === number && stage > MULTIPLIED) ? 'C' : null, 0.8);
        }
      }
      frame(g, column * result, HEAD + row * result - 1, Math.min(columns, Q - column) * result + 1, Math.min(rows, P - row) * result + 1);
    });
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([['hot', 'this tile: pixels, products'], ['A', 'other pixels; sums of pixels', 0.5], ['B', 'filter', 0.6], ['C', 'outputs that are done', 0.8]]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};
