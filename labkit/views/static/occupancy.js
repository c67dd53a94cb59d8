// An SM as a box of warps. Blocks fill it one after the other; beside it, how much of each resource they use.
const view = {
  start(ui, data) {
    const {kept, columns, slots, fills, stats, name} = data;
    const tallest = Math.max(...kept.map(choice => choice.slots / choice.columns)), SLOT = 34, HEAD = 20;

    ui.menu('GPU', kept.map(each => each.name), data, i => ({...kept[i], kept, start: ui.step}));

    function hatch(g, x, y, width, height, colour) {
      g.save();
      g.beginPath();
      g.rect(x, y, width, height);
      g.clip();
      g.strokeStyle = colour;
      g.lineWidth = 1.2;
      g.beginPath();
      for (let k = x - height; k < x + width; k += 6) { g.moveTo(k, y + height); g.lineTo(k + height, y); }
      g.stroke();
      g.restore();
    }

    const sheet = ui.element('div', {class: 'row'}, ui.body);
    const left = ui.element('div', {}, sheet), right = ui.element('div', {}, sheet);
    const part = share => room => room > 720 ? Math.floor((room - 24) * share) : room;
    ui.canvas({
      label: `warps of one SM of the ${name}, by block`, parent: left, maxWidth: part(0.6), height: () => HEAD + tallest * SLOT + 2,
      paint(g, width) {
        const fill = fills[ui.step], w = (width - 4) / columns, per = fill.warpsPerBlock;
        g.font = '650 13px system-ui, sans-serif';
        g.textAlign = 'left';
        g.fillStyle = ui.colour('fg');
        g.fillText(`one SM of the ${name}: room for ${slots} warps`, 1, 13);
        for (let slot = 0; slot < slots; slot++) {
          const x = 2 + slot % columns * w, y = HEAD + Math.floor(slot / columns) * SLOT, wide = w - 3, high = SLOT - 4;
          g.fillStyle = ui.colour('cell');
          g.fillRect(x, y, wide, high);
          const block = Math.floor(slot / per), waits = block === 0;
          if (slot < fill.warps) {
            g.fillStyle = waits ? ui.colour('dim', 0.35) : ui.colour('C', 0.4 + block % 3 * 0.2);
            g.fillRect(x, y, wide * fill.lanes, high);
            if (waits) hatch(g, x, y, wide * fill.lanes, high, ui.colour('dim'));
            if (slot % per === 0) {
              const text = String(block + 1), left = wide < 18 ? 1 : 4;
              g.font = `600 ${Math.max(9, Math.min(12, wide * 0.7))}px system-ui, sans-serif`;
              g.textAlign = 'left';
              const plate = waits || g.measureText(text).width + 4 > wide * fill.lanes;
              if (plate) {
                g.fillStyle = ui.colour('card');
                g.fillRect(x + left - 2, y + high / 2 - 8, g.measureText(text).width + 4, 16);
              }
              g.fillStyle = plate ? ui.colour('fg') : ui.ink(ui.colour('cell'), ui.colour('C', 0.4 + block % 3 * 0.2));
              g.fillText(text, x + left, y + high / 2 + 4);
            }
          }
          g.strokeStyle = ui.colour('line');
          g.lineWidth = 1;
          g.strokeRect(x + 0.5, y + 0.5, wide - 1, high - 1);
        }
      },
    });

    ui.canvas({
      label: 'share of each resource of the SM that the blocks use', parent: right, maxWidth: part(0.4), height: () => HEAD + tallest * SLOT + 2,
      paint(g, width) {
        const tall = (HEAD + tallest * SLOT) / fills[ui.step].bars.length;
        fills[ui.step].bars.forEach(([text, share, full], i) => {
          const y = i * tall;
          g.textAlign = 'left';
          g.font = '12px system-ui, sans-serif';
          g.fillStyle = ui.colour('fg');
          g.fillText(text, 1, y + 12);
          if (full) {
            const used = g.measureText(text).width;
            g.textAlign = 'right';
            g.font = '600 12px system-ui, sans-serif';
            g.fillStyle = ui.colour('hot-text');
            const whole = 'no room for one more block';   // the legend says so, too
            g.fillText(used + g.measureText(whole).width + 12 < width ? whole : 'no room', width - 1, y + 12);
          }
          g.fillStyle = ui.colour('cell');
          g.fillRect(1, y + 17, width - 2, 12);
          g.fillStyle = ui.colour(full ? 'hot' : 'A', full ? 0.9 : 0.6);
          g.fillRect(1, y + 17, (width - 2) * Math.min(1, share), 12);
          g.strokeStyle = ui.colour('line');
          g.strokeRect(1.5, y + 17.5, width - 3, 11);
        });
      },
    });
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([
      ['dim', 'block 1, which waits at a barrier', 'hatch'], ['C', 'other blocks, which can run', 0.7],
      ['line', 'empty', 'outline'], ['hot', 'used up: no room for one more block'],
    ]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};
