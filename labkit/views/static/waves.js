// The SMs of each wave as boxes, busy or idle; below, the useful share over the width of a tile.
const view = {
  start(ui, data) {
    const {steps, sms, gpu, rows} = data, BOX = 15, ROOM = Math.max(...steps.map(({waves}) => waves));
    const write = (g, text, x, y, colour = 'fg', align = 'left', font = '12px system-ui, sans-serif') => {
      g.fillStyle = ui.colour(colour);
      g.font = font;
      g.textAlign = align;
      g.fillText(text, x, y);
    };
    const across = width => Math.max(1, Math.min(sms, Math.floor((width - 80) / BOX)));
    const tall = width => Math.ceil(sms / across(width)) * BOX + 14;
    ui.canvas({
      label: 'SMs in each wave, busy or idle', height: width => 4 + ROOM * tall(width),
      paint(g, width) {
        const {waves, busy_last} = steps[ui.step], columns = across(width);
        for (let wave = 0; wave < waves; wave++) {
          const y = 4 + wave * tall(width), busy = wave < waves - 1 ? sms : busy_last;
          write(g, `wave ${wave + 1}`, 0, y + 12);
          write(g, `${busy} busy`, 0, y + 28, 'dim');
          for (let sm = 0; sm < sms; sm++) {
            const x = 80 + sm % columns * BOX, top = y + Math.floor(sm / columns) * BOX;
            if (sm < busy) {
              g.fillStyle = ui.colour('C');
              g.fillRect(x, top, BOX - 2, BOX - 2);
            } else {
              g.strokeStyle = ui.colour('dim');
              g.lineWidth = 1;
              g.strokeRect(x + 0.5, top + 0.5, BOX - 3, BOX - 3);
            }
          }
        }
      },
    });
    const TALL = 96;
    ui.canvas({
      label: 'useful share over the width of a tile', height: () => TALL + 46,
      paint(g, width) {
        const each = (width - 88) / steps.length;
        write(g, 'useful', 0, 68, 'dim');
        [0, 100].forEach(share => write(g, `${share}%`, 72, 20 + TALL * (1 - share / 100), 'dim', 'right'));
        steps.forEach(({useful, width: columns}, n) => {
          const x = 80 + n * each, now = n === ui.step;
          g.fillStyle = ui.colour(now ? 'hot' : 'A', now ? 1 : 0.7);
          g.fillRect(x, 16 + TALL * (1 - useful), each - 3, TALL * useful);
          if (now) write(g, `${Math.round(100 * useful)}%`, x + each / 2, 12 + TALL * (1 - useful), 'hot-text', 'center', '600 12px system-ui, sans-serif');
          if (now || n % 4 === 0) write(g, columns, x + each / 2, TALL + 31, now ? 'hot-text' : 'dim', 'center');
        });
        write(g, `columns of a tile of ${rows} rows`, 80, TALL + 45, 'dim');
      },
    });
    ui.legend([['C', `an SM of the ${gpu} with a tile`], ['dim', 'an SM without one', 'outline'], ['A', 'useful share', 0.7], ['hot', 'this width']]);
    return null;
  },
};
