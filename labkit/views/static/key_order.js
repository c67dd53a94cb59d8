// Three strips of 16 keys: in the middle the scores in the accumulators, above them the left operand of the next product
// with V in memory order, below them with V in its own order. Lines lead from scores of the chosen lane to their places.

const view = {
  start(ui, data) {
    const {held, needed, order} = data, KEYS = 16, HIGH = 26, TITLE = 22, GAP = 40;
    const strips = [
      ['left operand, V in memory order', [...Array(KEYS).keys()]],
      ['accumulators of the scores', [...Array(KEYS).keys()]],
      ['left operand, V in its own order', order],
    ];
    const top = n => n * (TITLE + HIGH + GAP) + TITLE;
    const canvas = ui.canvas({
      label: 'keys that a lane holds, and keys that it needs', maxWidth: 760, height: () => top(2) + HIGH + 4,
      paint(g, width) {
        const one = width / KEYS, mine = new Set(held[ui.step]);
        strips.forEach(([title, keys], n) => {
          g.font = '600 13px system-ui, sans-serif';
          g.textAlign = 'left';
          g.fillStyle = ui.colour('fg');
          g.fillText(`${title}: keys`, 0, top(n) - 8);
          keys.forEach((key, place) => {
            const takes = n === 1 ? mine.has(key) : needed[ui.step].includes(place), has = mine.has(key), x = place * one;
            g.fillStyle = ui.colour(!takes ? 'cell' : has ? 'C' : 'card');
            g.fillRect(x, top(n), one - 2, HIGH);
            if (takes && !has) {   // needed, and in another lane
              g.strokeStyle = ui.colour('hot');
              g.lineWidth = 3;
              g.strokeRect(x + 1.5, top(n) + 1.5, one - 5, HIGH - 3);
            }
            g.font = `${takes ? '700 ' : ''}${Math.min(13, one * 0.42)}px ui-monospace, Menlo, monospace`;
            g.textAlign = 'center';
            g.fillStyle = takes && has ? ui.ink(ui.colour('C')) : ui.colour(takes ? 'hot-text' : 'dim');
            g.fillText(key, x + one / 2 - 1, top(n) + HIGH * 0.66);
          });
        });
        g.lineWidth = 2;
        for (const key of held[ui.step]) {
          for (const [place, to] of [[key, top(0) + HIGH + 3], [order.indexOf(key), top(2) - TITLE]]) {
            if (!needed[ui.step].includes(place)) continue;
            g.strokeStyle = ui.colour('C', 0.8);
            g.beginPath();
            g.moveTo((key + 0.5) * one - 1, to < top(1) ? top(1) - TITLE : top(1) + HIGH + 3);
            g.lineTo((place + 0.5) * one - 1, to);
            g.stroke();
          }
        }
      },
    });
    canvas.style.cursor = 'pointer';
    canvas.onclick = event => {
      const key = Math.floor(event.offsetX / canvas.clientWidth * KEYS), lane = held.findIndex(keys => keys.includes(key));
      if (lane >= 0) ui.go(lane);
    };
    ui.legend([['C', 'held by this lane'], ['hot', 'needed, but held by another lane', 'outline'], ['cell', 'of other lanes']]);
    return null;
  },
};
