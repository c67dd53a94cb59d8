// Left, the tiles of scores: a row for each tile of queries, a column for each tile of keys. Right, the rows of dQ: the
// blocks that have added to them, in the order of two runs, and the sum of one element. A choice changes the way.

const view = {
  start(ui, data) {
    const {kept, common, states, steps, kernels, stats} = data, blocks = common.blocks, tiles = common.rows.length;
    const [TO_COME, DONE, NOW, WAITS] = [0, 1, 2, 3], HEAD = 40, ROW = 54, BOX = 21;

    ui.menu('blocks share dQ by', kept.map(({name}) => name), data, i => ({...kept[i], kept, common}));

    function letters(g, text, x, y, colour = 'dim', weight = 400, size = 12, family = 'system-ui, sans-serif') {
      g.font = `${weight} ${size}px ${family}`;
      g.fillStyle = colour[0] === '#' ? colour : ui.colour(colour);
      g.fillText(text, x, y);
    }
    function hatch(g, x, y, wide, high) {
      g.save();
      g.beginPath();
      g.rect(x, y, wide, high);
      g.clip();
      g.strokeStyle = ui.colour('dim');
      g.lineWidth = 1.3;
      g.beginPath();
      for (let k = x - high; k < x + wide; k += 6) { g.moveTo(k, y + high); g.lineTo(k + high, y); }
      g.stroke();
      g.restore();
    }

    ui.canvas({
      label: 'tiles of scores, and the blocks that have added to each row of dQ', maxWidth: 860, height: () => HEAD + tiles * ROW + 6,
      paint(g, width) {
        const step = ui.step, now = steps[step], isOwned = data.firstOwned !== null && step >= data.firstOwned;
        const SIDE = Math.min(48, (width - 300) / blocks), LEFT = width < 560 ? 0 : 92, RIGHT = LEFT + blocks * SIDE + 24;
        const title = width < 560 ? 'dQ' : data.hasCopies ? 'copies of dQ, one per block' : isOwned ? 'rows of dQ: tiles of keys added, in order' : 'rows of dQ: blocks that have added, in order';
        g.textAlign = 'left';
        letters(g, width < 560 ? kernels[step] : `kernel: ${kernels[step]}`, 0, 13, 'fg', 600);
        letters(g, title, RIGHT, 13, 'fg', 600);
        for (let b = 0; b < blocks; b++) {
          g.textAlign = 'center';
          letters(g, isOwned && SIDE > 46 ? `keys ${b}` : SIDE < 46 ? b : `block ${b}`, LEFT + (b + 0.5) * SIDE, 32, 'dim', 400, 11);
        }
        g.textAlign = 'left';
        for (let t = 0; t < tiles; t++) {
          const y = HEAD + t * ROW, high = ROW - 10;
          if (LEFT) letters(g, isOwned ? `block ${t}` : `Q ${common.rows[t]}`, 0, y + high / 2 + 4, 'dim', 400, 12);
          for (let b = 0; b < blocks; b++) {
            const state = states[(step * tiles + t) * blocks + b], x = LEFT + b * SIDE;
            g.fillStyle = state === NOW ? ui.colour('hot') : state === DONE ? ui.colour('A', 0.45) : ui.colour('cell');
            g.fillRect(x, y, SIDE - 2, high);
            if (state === WAITS) hatch(g, x, y, SIDE - 2, high);
            if (state === TO_COME || state === WAITS) {
              g.strokeStyle = ui.colour('line');
              g.lineWidth = 1;
              g.strokeRect(x + 0.5, y + 0.5, SIDE - 3, high - 1);
            }
            g.textAlign = 'center';
            if (state === WAITS) {
              g.fillStyle = ui.colour('card');
              g.fillRect(x + 5, y + high / 2 - 9, SIDE - 12, 17);
              letters(g, 'waits', x + SIDE / 2 - 1, y + high / 2 + 4, 'fg', 600, 11);
            }
            g.textAlign = 'left';
          }
          for (let run = 0; run < 2; run++) {
            const line = y + run * (BOX + 2), left = RIGHT + 42, order = now.arrivals[run][t], fresh = order.length - now.new[t];
            for (let i = 0; i < blocks; i++) {
              const slot = data.hasCopies ? order.indexOf(i) : i < order.length ? i : -1, x = left + i * (BOX + 2);
              const block = slot < 0 ? null : order[slot];
              g.strokeStyle = ui.colour('line');
              g.lineWidth = 1;
              g.strokeRect(x + 0.5, line + 0.5, BOX - 1, BOX - 1);
              if (block === null) continue;
              const isNew = slot >= fresh;
              g.fillStyle = isNew ? ui.colour('hot') : ui.colour('A', 0.45);
              g.fillRect(x, line, BOX, BOX);
              g.textAlign = 'center';
              letters(g, block, x + BOX / 2, line + 15, ui.ink(g.fillStyle), 650, 12);
              g.textAlign = 'left';
            }
            const x = left + blocks * (BOX + 2) + 8, sums = now.sums.map(of => of[t]);
            letters(g, `run ${run + 1}`, RIGHT, line + 15);
            if (!sums[run]) continue;
            const other = sums[1 - run], text = sums[run].replace('-', '\u2212');
            let same = 0;
            while (same < text.length && sums[run][same] === other[same]) same++;
            const mono = 'ui-monospace, Menlo, monospace';
            letters(g, text.slice(0, same), x, line + 15, 'fg', 400, 12, mono);
            const wide = g.measureText(text.slice(0, same)).width, rest = text.slice(same);
            letters(g, rest, x + wide, line + 15, 'hot-text', 750, 12, mono);
            if (rest) {
              g.fillStyle = ui.colour('hot-text');
              g.fillRect(x + wide, line + 18, g.measureText(rest).width, 2);
            }
          }
        }
      },
    });
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.element('p', {class: 'wait', text: 'The number: one element of these rows, summed in float32. Digits that differ between two runs are underlined. '
      + 'Tiles and their order are the run\u2019s; which of several simultaneous adds arrives first is drawn at random.'}, ui.body);
    ui.legend([['hot', 'now'], ['A', 'done', 0.45], ['dim', 'waits for its turn', 'hatch']]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};
