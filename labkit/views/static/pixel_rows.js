// Left the images with the pixels that the copy reads, each with the number of its row in the tile; right that tile as it
// is stored, a row of eight vectors per pixel. A line joins the row of the step with its pixel.

const view = {
  start(ui, data) {
    const {images: [N, H, W], rim: [top, bottom, left, right], rows, taps: [R, S], reach, dilation, steps, pixels, corners, vectors} = data;
    const HEAD = 42, LINE = 21, PLACE = 46, NAME = 30, BETWEEN = 92, GAP = 10, PLACES = 8;
    const down = H + top + bottom, across = W + left + right, TALL = HEAD + rows * LINE + 4;
    const cell = Math.max(5, Math.min(27, Math.floor((TALL - HEAD - (N - 1) * GAP) / (N * down)), Math.floor(330 / across)));
    const wide = across * cell, tileAt = wide + BETWEEN, WIDTH = tileAt + PLACES * PLACE + 2;
    const HEIGHT = Math.max(TALL, HEAD + N * down * cell + (N - 1) * GAP + 4);
    const x = column => (left + column) * cell, y = (n, row) => HEAD + n * (down * cell + GAP) + (top + row) * cell;
    const at = (r, s, row) => 3 * ((r * S + s) * rows + row);

    function write(g, words, px, py, {colour = 'dim', size = 12, weight = 400, align = 'left'} = {}) {
      g.font = `${weight} ${size}px system-ui, sans-serif`;
      g.textAlign = align;
      g.fillStyle = colour[0] === '#' ? colour : ui.colour(colour);
      g.fillText(words, px, py);
    }
    function box(g, colour, px, py, width, height, share = 1) {
      g.fillStyle = ui.colour('card');
      g.fillRect(px, py, width, height);
      g.fillStyle = ui.colour(colour, share);
      g.fillRect(px, py, width, height);
    }
    function outline(g, colour, px, py, width, height, line = 1, dashes = []) {
      g.strokeStyle = ui.colour(colour);
      g.lineWidth = line;
      g.setLineDash(dashes);
      g.strokeRect(px, py, width, height);
      g.setLineDash([]);
    }

    ui.canvas({
      label: 'images, whose pixels are copied to rows of a swizzled tile', maxWidth: room => Math.min(WIDTH, room),
      height: width => HEIGHT * Math.min(1, width / WIDTH),
      paint(g, width) {
        const scale = Math.min(1, width / WIDTH), [r, s, row] = steps[ui.step], all = row === rows;
        const count = all ? rows : row + 1;
        g.scale(scale, scale);
        write(g, N > 1 ? 'images, one below the other' : 'image', 0, 13, {colour: 'fg', size: 13, weight: 650});
        write(g, 'around them zeros that are not stored', 0, 30);
        write(g, 'tile in shared memory', tileAt, 13, {colour: 'fg', size: 13, weight: 650});
        for (let p = 0; p < PLACES; p++) write(g, p ? p : 'place 0', tileAt + (p + 0.5) * PLACE, 34, {size: 11, align: 'center'});
        write(g, 'row', tileAt - 8, 34, {size: 11, align: 'right'});

        for (let n = 0; n < N; n++)
          for (let i = -top; i < H + bottom; i++)
            for (let j = -left; j < W + right; j++) {
              const inside = i >= 0 && i < H && j >= 0 && j < W;
              if (inside) box(g, 'A', x(j), y(n, i), cell - 1, cell - 1, 0.18);
              else outline(g, 'line', x(j) + 0.5, y(n, i) + 0.5, cell - 2, cell - 2);
            }
        for (let i = 0; i < count; i++) {
          const [n, h, w] = corners.subarray(3 * i, 3 * i + 3), now = i === row;
          if (n < 0) continue;
          const outside = pixels[at(r, s, i)] < 0, px = x(w + s * dilation[1]), py = y(n, h + r * dilation[0]);
          if (!outside) box(g, now ? 'hot' : 'A', px, py, cell - 1, cell - 1, 0.95);
          if (cell >= 14) write(g, i, px + cell / 2 - 0.5, py + cell / 2 + 3.5, {colour: outside ? 'dim' : ui.ink(g.fillStyle), size: 11, weight: outside ? 400 : 650, align: 'center'});
          if (now || (all && i === 0)) outline(g, now ? 'hot' : 'ink', x(w), y(n, h), reach[1] * cell, reach[0] * cell, 2);
        }

        for (let i = 0; i < rows; i++) {
          const py = HEAD + i * LINE, now = i === row;
          write(g, i, tileAt - 8, py + 14, {size: 11, align: 'right', colour: now ? 'hot-text' : 'dim', weight: now ? 650 : 400});
          for (let p = 0; p < PLACES; p++) {
            const vector = vectors[((r * S + s) * rows + i) * PLACES + p], px = tileAt + p * PLACE;
            if (i >= count) { outline(g, 'line', px + 0.5, py + 0.5, PLACE - 3, LINE - 4, 1, [2, 3]); continue; }
            const colour = vector < 0 ? 'cell' : now ? 'hot' : vector === 0 ? 'B' : 'A';
            box(g, colour, px, py, PLACE - 2, LINE - 3, vector > 0 && !now ? 0.75 : 1);
            const ink = vector < 0 ? 'dim' : ui.ink(g.fillStyle);
            write(g, vector < 0 ? '0' : `v${vector}`, px + PLACE / 2 - 1, py + 13, {colour: ink, size: 11, weight: vector === 0 ? 700 : 400, align: 'center'});
          }
        }
        if (all) return;
        const [n, h, w] = corners.subarray(3 * row, 3 * row + 3);
        if (n < 0) return;
        g.strokeStyle = ui.colour('hot');
        g.lineWidth = 1.5;
        g.setLineDash(pixels[at(r, s, row)] < 0 ? [4, 4] : []);
        g.beginPath();
        g.moveTo(x(w + s * dilation[1]) + cell, y(n, h + r * dilation[0]) + cell / 2);
        g.lineTo(wide + 14, y(n, h + r * dilation[0]) + cell / 2);
        g.lineTo(tileAt - NAME, HEAD + row * LINE + LINE / 2);
        g.stroke();
        g.setLineDash([]);
      },
    });
    const numbers = data.stats.labels.map(label => ui.stat(label));
    ui.legend([['hot', 'this row of the tile'], ['A', 'pixels of this copy, with their row; v1 to v7: further vectors of 16 bytes'], ['B', 'v0, the first channels'], ['cell', '0: zeros that TMA writes'], ['line', 'outside of the image', 'outline']]);
    return step => numbers.forEach((show, i) => show(data.stats.values[step][i]));
  },
};
