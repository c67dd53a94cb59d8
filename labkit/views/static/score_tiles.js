// For each run the tiles of scores, queries down and keys across: the one on the chip, those that are gone, those to come,
// and those that are never computed. Tiles of Q, of K and V, and of O stand at the edges; below, bytes moved so far.

const view = {
  start(ui, data) {
    const {runs, labels, most, scores} = data, METERS = 4, WIDE = 2 + METERS, HEAD = 44, STRIP = 22, GAP = 8, METER = 66;
    const INKS = ['A', 'B', 'C', 'dim'];
    const letters = (g, size, weight = 400) => { g.font = `${weight} ${size}px system-ui, sans-serif`; };
    const visit = (run, n) => run.visits.slice(n * WIDE, (n + 1) * WIDE);
    const count = run => run.visits.length / WIDE;
    const bytes = n => n < 10000 ? `${n} B` : `${Math.round(n / 1024).toLocaleString('en')} KB`;

    function square(g, x, y, width, height, colour, share = 1) {
      g.fillStyle = ui.colour('cell');
      g.fillRect(x, y, width - 2, height - 2);
      if (!colour) return;
      g.fillStyle = ui.colour(colour, share);
      g.fillRect(x, y, width - 2, height - 2);
    }
    function crossed(g, x, y, width, height) {
      g.strokeStyle = ui.colour('line');
      g.lineWidth = 1;
      g.strokeRect(x + 0.5, y + 0.5, width - 3, height - 3);
      g.beginPath();
      g.moveTo(x + 1, y + height - 3);
      g.lineTo(x + width - 3, y + 1);
      g.stroke();
    }

    const row = ui.element('div', {class: 'row', style: 'flex-wrap:wrap;gap:24px'}, ui.body);
    for (const run of runs) {
      const {down, across, seen} = run, all = count(run);
      const tile = Math.floor(Math.min(64, 300 / across)), high = Math.floor(Math.max(24, Math.min(64, 210 / down)));
      const left = STRIP + GAP, top = HEAD + STRIP + GAP, width = left + across * tile + GAP + STRIP;
      const needed = Array.from({length: down}, (_, i) => seen[i].filter(Boolean).length);
      ui.canvas({
        label: `tiles of scores of ${run.name}`, parent: ui.element('div', {style: `flex:0 1 ${Math.max(width, 300)}px`}, row),
        maxWidth: room => Math.min(Math.max(width, 300), room), height: () => top + down * high + GAP + METER,
        paint(g, wide) {
          const step = Math.min(ui.step, all - 1), going = ui.step < all, [i, j, ...moved] = visit(run, step);
          const done = Array(down).fill(0), gone = new Set();
          for (let n = 0; n <= step; n++) {
            const [y, x] = visit(run, n);
            done[y]++;
            if (n < step || !going) gone.add(y * across + x);
          }
          letters(g, 14, 650);
          g.textAlign = 'left';
          g.fillStyle = ui.colour('fg');
          g.fillText(run.name, 0, 14);
          letters(g, 12, 650);
          g.fillStyle = ui.colour('A');
          g.fillText('Q', 4, top - 8);
          g.fillStyle = ui.colour('B');
          g.fillText('K, V', left, HEAD - 6);
          g.fillStyle = ui.colour('C');
          g.fillText('O', left + across * tile + GAP + 4, top - 8);
          for (let x = 0; x < across; x++) square(g, left + x * tile, HEAD, tile, STRIP, going && x === j ? 'hot' : 'B', going && x === j ? 0.9 : 0.35);
          for (let y = 0; y < down; y++) {
            const here = going && y === i;
            square(g, 0, top + y * high, STRIP, high, here ? 'hot' : 'A', here ? 0.9 : 0.35);
            square(g, left + across * tile + GAP, top + y * high, STRIP, high, done[y] ? 'C' : null, done[y] / needed[y]);
            for (let x = 0; x < across; x++) {
              const place = [left + x * tile, top + y * high, tile, high];
              if (!seen[y][x]) crossed(g, ...place);
              else if (here && x === j) square(g, ...place, 'hot', 0.9);
              else square(g, ...place, gone.has(y * across + x) ? 'A' : null, 0.22);
            }
          }
          const below = top + down * high + GAP, room = Math.min(wide, Math.max(width, 300)) - 4;
          let x = 0;
          moved.forEach((amount, k) => {
            g.fillStyle = ui.colour(INKS[k]);
            g.fillRect(x, below, amount / most * room, 20);
            x += amount / most * room;
          });
          letters(g, 12, 650);
          g.fillStyle = ui.colour('fg');
          g.fillText(`${bytes(moved.reduce((a, b) => a + b))} moved so far`, 0, below + 36);
          letters(g, 12);
          g.fillStyle = ui.colour('dim');
          g.fillText(moved.map((amount, k) => `${labels[k]} ${bytes(amount)}`).join('   '), 0, below + 54);
        },
      });
    }
    const alive = ui.stat('bytes of scores on the chip');
    const stored = ui.stat('bytes of scores, if they were stored');
    ui.legend([['hot', 'on the chip now'], ['A', 'computed, and gone', 0.3], ['cell', 'to come'], ['line', 'no query sees a key: never computed', 'outline'], ['C', 'O, as far as it is', 0.8]]);
    return () => {
      const going = runs.filter(run => ui.step < count(run));
      alive(going.length ? 4 * Math.max(...going.map(run => run.tile[0] * run.tile[1])) : 0);
      stored(scores);
    };
  },
};
