// For each run two frames. HBM: strips of Q, K and V, and O at the edges of the matrix of scores, which is never stored;
// its tile on chip now is hot, tiles that were discarded are pale. On chip: the tiles that the block holds, and which of
// them the step loaded. Below, bytes moved so far. Matrix, tiles and bytes have one scale, whatever the tile's size is.

const view = {
  start(ui, data) {
    const {runs, labels, scale_bytes, scores, queries, keys, head_dim} = data, METERS = 4, WIDE = 2 + METERS, INKS = ['A', 'B', 'C', 'dim'];
    const SIDE = 216, STRIP = 22, GAP = 8, TOP = 24, FRAME = 10, BETWEEN = 12, CHIP = 150, METER = 74;
    const unit = SIDE / Math.max(queries, keys), across = keys * unit, down = queries * unit;
    const small = Math.min(unit / 2, 36 / head_dim);   // pixels of an element on chip
    const left = FRAME + STRIP + GAP, top = TOP + 40 + STRIP + GAP, hbm = left + across + GAP + STRIP + FRAME;
    const bottom = Math.max(top + down, top + SIDE * 0.85) + FRAME, WIDTH = hbm + BETWEEN + CHIP, HEIGHT = bottom + METER;
    const letters = (g, size, weight = 400) => { g.font = `${weight} ${size}px system-ui, sans-serif`; };
    const visit = (run, n) => run.visits.slice(n * WIDE, (n + 1) * WIDE);
    const count = run => run.visits.length / WIDE;
    const bytes = n => n < 10000 ? `${n.toLocaleString('en')} B` : `${Math.round(n / 1024).toLocaleString('en')} KB`;

    function box(g, x, y, width, height, colour, share = 1) {
      g.fillStyle = ui.colour('cell');
      g.fillRect(x, y, width - 1, height - 1);
      if (!colour) return;
      g.fillStyle = ui.colour(colour, share);
      g.fillRect(x, y, width - 1, height - 1);
    }
    function outline(g, colour, x, y, width, height, dashes = []) {
      g.strokeStyle = ui.colour(colour);
      g.lineWidth = 1;
      g.setLineDash(dashes);
      g.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
      g.setLineDash([]);
    }
    function text(g, words, x, y, colour = 'dim', size = 12, weight = 400) {
      letters(g, size, weight);
      g.fillStyle = ui.colour(colour);
      g.fillText(words, x, y);
    }

    const row = ui.element('div', {class: 'row', style: 'flex-wrap:wrap;gap:20px'}, ui.body);
    for (const run of runs) {
      const [tall, wide] = run.tile, all = count(run);
      const needed = run.seen.map(tiles => tiles.filter(Boolean).length);
      const size = (n, tile, end) => Math.min(tile, end - n * tile) * unit;
      ui.canvas({
        label: `tiles of scores of ${run.name}`, parent: ui.element('div', {style: 'min-width:0'}, row),
        maxWidth: room => Math.min(WIDTH, runs.length > 1 && room >= 840 ? Math.floor((room - 20) / 2) : room), height: width => HEIGHT * Math.min(1, width / WIDTH),
        paint(g, width) {
          g.scale(Math.min(1, width / WIDTH), Math.min(1, width / WIDTH));
          const step = Math.min(ui.step, all - 1), going = ui.step < all, [i, j, ...moved] = visit(run, step);
          const [before_i, before_j] = step ? visit(run, step - 1) : [-1, -1];
          const done = Array(run.down).fill(0), gone = new Set();
          for (let n = 0; n <= step; n++) {
            const [y, x] = visit(run, n);
            done[y]++;
            if (n < step || !going) gone.add(y * run.across + x);
          }
          g.textAlign = 'left';
          text(g, run.name, 0, 14, 'fg', 14, 650);
          outline(g, 'dim', 0, TOP, hbm, bottom - TOP);
          text(g, 'HBM', FRAME, TOP + 16, 'fg', 12, 650);
          text(g, 'K, V', left, top - STRIP - GAP - 5, 'fg');
          text(g, 'Q', FRAME + 4, top - 5, 'fg');
          text(g, 'O', left + across + GAP + 5, top - 5, 'fg');
          for (let x = 0; x < run.across; x++) box(g, left + x * wide * unit, top - STRIP - GAP, size(x, wide, keys), STRIP, going && x === j ? 'hot' : 'B', going && x === j ? 0.9 : 0.5);
          for (let y = 0; y < run.down; y++) {
            const here = going && y === i, at = top + y * tall * unit, high = size(y, tall, queries);
            box(g, FRAME, at, STRIP, high, here ? 'hot' : 'A', here ? 0.9 : 0.5);
            box(g, left + across + GAP, at, STRIP, high, done[y] ? 'C' : null, done[y] / needed[y]);
            for (let x = 0; x < run.across; x++) {
              const place = [left + x * wide * unit, at, size(x, wide, keys), high];
              if (!run.seen[y][x]) {
                outline(g, 'line', ...place);
                g.beginPath();
                g.moveTo(place[0], place[1] + place[3]);
                g.lineTo(place[0] + place[2], place[1]);
                g.stroke();
              } else if (here && x === j) box(g, ...place, 'hot', 0.9);
              else box(g, ...place, gone.has(y * run.across + x) ? 'A' : null, 0.22);
            }
          }
          outline(g, 'dim', left - 2, top - 2, across + 3, down + 3, [4, 3]);

          const chip = hbm + BETWEEN, middle = TOP + (bottom - TOP) / 2 + 8;
          outline(g, 'dim', chip, TOP, CHIP - 1, bottom - TOP);
          text(g, 'on chip', chip + FRAME, TOP + 16, 'fg', 12, 650);
          if (going) {
            const high = size(i, tall, queries) / unit * small, long = size(j, wide, keys) / unit * small, width = head_dim * small;
            const is_new = {Q: i !== before_i, K: j !== before_j, V: j !== before_j, S: true, O: i !== before_i};
            const tiles = [['Q', 0, 0, width, high, 'A'], ['K', 44, 0, width, long, 'B'], ['V', 88, 0, width, long, 'B'], ['S', 0, 1, long, high, 'D'], ['O', 88, 1, width, high, 'C']];
            for (const [name, x, line, w, h, colour] of tiles) {
              const y = line ? middle + 34 : TOP + 54;
              text(g, name, chip + FRAME + x, y - 18, 'fg', 12, 650);
              text(g, is_new[name] ? 'new' : 'stays', chip + FRAME + x, y - 5, is_new[name] ? 'hot-text' : 'dim', 11);
              box(g, chip + FRAME + x, y, Math.max(w, 3), Math.max(h, 3), colour, is_new[name] ? 0.95 : 0.4);
            }
          }

          const below = bottom + 10;
          let x = 0;
          box(g, 0, below, WIDTH, 18);
          moved.forEach((amount, k) => {
            g.fillStyle = ui.colour(INKS[k]);
            g.fillRect(x, below, amount / scale_bytes * WIDTH, 18);
            x += amount / scale_bytes * WIDTH;
          });
          text(g, `${bytes(moved.reduce((a, b) => a + b))} moved so far`, 0, below + 36, 'fg', 12, 650);
          g.textAlign = 'right';
          text(g, `full bar: ${bytes(scale_bytes)}`, WIDTH, below + 36);
          g.textAlign = 'left';
          text(g, moved.map((amount, k) => `${labels[k]} ${bytes(amount)}`).join('   '), 0, below + 54);
        },
      });
    }
    const alive = ui.stat('bytes of scores on chip');
    const stored = ui.stat('bytes of scores, if they were stored');
    ui.legend([['hot', 'on chip now'], ['A', 'computed and discarded', 0.3], ['cell', 'to come'], ...(runs.some(run => run.seen.flat().includes(false)) ? [['line', 'no query sees a key: never computed', 'outline']] : []), ['A', 'Q'], ['B', 'K and V'], ['C', 'O'], ['dim', 'row maxima and sums']]);
    return () => {
      const going = runs.filter(run => ui.step < count(run));
      alive(going.length ? 4 * Math.max(...going.map(run => run.tile[0] * run.tile[1])) : 0);
      stored(scores);
    };
  },
};
