// Above, the pages in memory. Below, each sequence: its pages in order, the block that reads each part, and, once its
// parts are merged, a bar with the weight of each. A choice above changes the kernel.

const view = {
  start(ui, data) {
    const {owners, tiles, parts, pages, lengths, rounds, tile, choices, stats} = data, per = data.tiles_per_page;
    const COLOURS = ['A', 'B', 'C'], widest = Math.max(...tiles.map(of => of.length)), TOP = 68, EACH = 104;

    if (choices.length > 1) ui.menu('kernel', choices.map(({name}) => name), data, i => ({...data, ...choices[i], start: 0}));

    function write(g, text, x, y, colour = 'dim', font = '11px system-ui, sans-serif', align = 'left') {
      g.font = font;
      g.textAlign = align;
      g.fillStyle = ui.colour(colour);
      g.fillText(text, x, y);
    }
    function piece(g, x, y, wide, tall, sequence, number) {   // a tile of keys: read, being read, or neither
      const [, when] = tiles[sequence][number], now = when === ui.step;
      g.fillStyle = now ? ui.colour('hot') : ui.colour(COLOURS[sequence], when < ui.step ? 0.9 : 0.25);
      g.fillRect(x, y, wide, tall);
      if (now) {   // a mark besides the colour
        g.fillStyle = ui.colour('card');
        g.fillRect(x + wide / 2 - 2, y + tall / 2 - 2, 4, 4);
      }
    }
    function outline(g, x, y, wide, tall, colour = 'dim') {
      g.strokeStyle = ui.colour(colour);
      g.lineWidth = 1;
      g.strokeRect(x + 0.5, y + 0.5, wide - 1, tall - 1);
    }

    ui.canvas({
      label: 'pages in memory, and the sequences that they hold, with the blocks that read them',
      height: () => TOP + EACH * tiles.length,
      paint(g, width) {
        const room = width / owners.length, box = Math.min(28, room) - 2;
        write(g, 'memory: pages by number', 0, 13, 'fg', '600 13px system-ui, sans-serif');
        owners.forEach(([sequence, number], page) => {
          const x = page * Math.min(28, room), wide = box / per;
          for (let n = 0; n < per; n++) {
            if (sequence >= 0 && number * per + n < tiles[sequence].length) piece(g, x + n * wide, 20, wide - (n < per - 1 ? 1 : 0), 18, sequence, number * per + n);
          }
          outline(g, x, 20, box, 18, 'dim');
          if (box >= 16 || page % 4 === 0) write(g, page, x + box / 2, 50, 'dim', '10px system-ui, sans-serif', 'center');
        });
        tiles.forEach((of, sequence) => {
          const y = TOP + sequence * EACH, one = width / widest, whole = of.length * one - 2;
          write(g, `sequence ${sequence}: ${lengths[sequence]} keys`, 0, y + 8, 'fg', '600 12px system-ui, sans-serif');
          of.forEach((_, number) => piece(g, number * one, y + 28, one - (number % per < per - 1 ? 1 : 2), 20, sequence, number));
          pages[sequence].forEach((page, number) => {
            const wide = Math.min(per, of.length - number * per) * one - 2;
            outline(g, number * per * one, y + 28, wide, 20, 'dim');
            write(g, one * per > 40 ? `page ${page}` : page, number * per * one + 1, y + 23, 'dim', '10px system-ui, sans-serif');
          });
          const merged = ui.step >= rounds + sequence, now = ui.step === rounds + sequence;
          let left = 0;
          for (const {block, first, end, share} of parts[sequence]) {
            const x = first * one, right = end * one - 2, wide = share * whole, middle = (x + right) / 2;
            if (merged) {
              g.fillStyle = ui.colour(COLOURS[sequence], 0.12);   // from the part to its weight
              g.beginPath();
              [[x, 54], [right, 54], [left + wide, 78], [left, 78]].forEach(([px, py]) => g.lineTo(px, y + py));
              g.fill();
              g.fillStyle = ui.colour(now ? 'hot' : COLOURS[sequence], now ? 0.3 : 0.45);
              g.fillRect(left, y + 78, Math.max(1, wide - 1), 15);
              outline(g, left, y + 78, Math.max(2, wide - 1), 15, now ? 'hot' : 'dim');
              if (wide > 34) write(g, `${Math.round(100 * share)}%`, left + wide / 2, y + 90, 'fg', '11px system-ui, sans-serif', 'center');
            }
            g.fillStyle = ui.colour('ink');
            g.fillRect(x, y + 52, right - x, 2);
            write(g, right - x > 50 ? `block ${block}` : block, middle, y + 66, 'fg', '11px system-ui, sans-serif', 'center');
            left += wide;
          }
          if (!merged) {
            outline(g, 0, y + 78, whole, 15, 'line');
            write(g, whole > 110 ? 'O: not merged yet' : 'O', 6, y + 90, 'dim', '10px system-ui, sans-serif');
          }
        });
      },
    });
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([['hot', `read now, ${tile} keys`], ...tiles.map((_, n) => [COLOURS[n], `sequence ${n}: read`, 0.9]), ['dim', 'free page', 'outline'],
      ['A', 'bar below: weight of each part in O', 0.45]]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};
