// On the left the probabilities of a query at this spread of the scores, the largest first; on the right the error of O by
// the spread: a colour for each format, a solid line for scores that stay on the chip, a dashed one for scores that are stored.

const view = {
  start(ui, data) {
    const {spreads, weights, names, looks, errors, limits: [LEAST, MOST]} = data, count = spreads.length, keys = weights.shape[1];
    const of = (format, way, at) => errors[(format * 2 + way) * count + at], STORED = 0, FUSED = 1;
    const told = value => Number.isFinite(value) ? value.toExponential(1).replace('e+', 'e') : 'no number';

    const sheet = ui.element('div', {class: 'row'}, ui.body);
    const left = ui.element('div', {style: 'flex:1 1 300px;min-width:0'}, sheet);
    const right = ui.element('div', {style: 'flex:1 1 480px;min-width:0'}, sheet);
    const part = share => width => width < 800 ? width : Math.floor((width - 22) * share);
    ui.canvas({
      label: 'probabilities of a query, the largest first', parent: left, maxWidth: part(0.36), height: () => 280,
      paint(g, width, height) {
        const L = 34, B = 30, T = 24, high = height - B - T, wide = (width - L) / keys;
        g.font = '600 13px system-ui, sans-serif';
        g.textAlign = 'left';
        g.fillStyle = ui.colour('fg');
        g.fillText('probabilities of a query', 0, 14);
        g.font = '11px system-ui, sans-serif';
        g.textAlign = 'right';
        for (const share of [0, 0.5, 1]) {
          const y = T + high * (1 - share);
          g.fillStyle = ui.colour('line');
          g.fillRect(L, y, width - L, 1);
          g.fillStyle = ui.colour('dim');
          g.fillText(share, L - 6, y + 4);
        }
        for (let key = 0; key < keys; key++) {
          const tall = high * weights[ui.step * keys + key];
          g.fillStyle = ui.colour(key ? 'A' : 'D', 0.85);
          g.fillRect(L + key * wide, T + high - tall, Math.max(1, wide - (wide > 3 ? 1 : 0)), tall);
        }
        g.textAlign = 'left';
        g.fillStyle = ui.colour('dim');
        g.fillText(`its ${keys} keys, the largest probability first`, L, height - 10);
      },
    });
    ui.canvas({
      label: 'error of O by the spread of the scores', parent: right, maxWidth: part(0.64), height: () => 280,
      paint(g, width, height) {
        const L = 44, R = 14, T = 24, B = 42, low = Math.log10(LEAST), high = Math.log10(MOST);
        const first = Math.log2(spreads[0]), across = Math.max(1e-9, Math.log2(spreads[count - 1]) - first);
        const x = at => count > 1 ? L + 12 + (width - L - R - 24) * (Math.log2(spreads[at]) - first) / across : (L + width) / 2;
        const y = value => T + (height - T - B) * (high - Math.log10(Math.max(LEAST, Math.min(MOST, value)))) / Math.max(1e-9, high - low);
        g.font = '600 13px system-ui, sans-serif';
        g.textAlign = 'left';
        g.fillStyle = ui.colour('fg');
        g.fillText('error of O, over O', 0, 14);
        g.font = '11px system-ui, sans-serif';
        g.fillStyle = ui.colour('hot', 0.16);
        g.fillRect(x(ui.step) - 9, T, 18, height - T - B);
        for (let power = Math.ceil(low); power <= high; power++) {
          g.fillStyle = ui.colour('line');
          g.fillRect(L, y(10 ** power), width - L - R, 1);
          g.fillStyle = ui.colour('dim');
          g.textAlign = 'right';
          g.fillText(labkitPower(power), L - 6, y(10 ** power) + 4);
        }
        g.textAlign = 'center';
        spreads.forEach((spread, at) => g.fillText(spread, x(at), height - B + 16));
        g.fillText('spread of the scores', L + (width - L - R) / 2, height - 6);
        names.forEach((_, format) => {
          for (const way of [STORED, FUSED]) {
            g.strokeStyle = ui.colour(looks[format]);
            g.lineWidth = 2;
            g.setLineDash(way === STORED ? [5, 4] : []);
            g.beginPath();
            spreads.forEach((_, at) => g.lineTo(x(at), y(of(format, way, at))));
            g.stroke();
            g.setLineDash([]);
            spreads.forEach((_, at) => {
              g.fillStyle = ui.colour(way === STORED ? 'card' : looks[format]);
              g.beginPath();
              g.arc(x(at), y(of(format, way, at)), at === ui.step ? 5.5 : 3.5, 0, 7);
              g.fill();
              g.stroke();
            });
          }
        });
      },
    });
    const spread = ui.stat('spread of the scores'), most = ui.stat('largest probability');
    const numbers = names.map(name => ui.stat(`${name}: fused, scores stored`));
    ui.legend([...names.map((name, format) => [looks[format], name]), ['fg', 'fused', 'line'], ['fg', 'scores stored', 'dashed']]);
    return step => {
      spread(spreads[step]);
      most(weights[step * keys].toFixed(2));
      numbers.forEach((show, format) => show(`${told(of(format, FUSED, step))}, ${told(of(format, STORED, step))}`));
    };
  },
};
