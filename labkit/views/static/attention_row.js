// The step is the query, a menu chooses the run. Below each word the score of its key and its probability, then its
// value, as strongly coloured as that is high; on the right all of P with the row of this query, and its row of O.

const view = {
  start(ui, data) {
    const {runs, says, stats, words, features, visible, S, P, V, O, labels} = data;
    const N = words.length, d = features.length;
    let run = 0;

    if (runs.length > 1) {
      const label = ui.element('label', {class: 'slider'}, ui.element('div', {class: 'sliders'}, ui.body));
      ui.element('span', {class: 'name', text: 'run'}, label);
      const select = ui.element('select', {'aria-label': 'run'}, label);
      runs.forEach((name, r) => ui.element('option', {value: r, text: name}, select));
      select.onchange = () => {
        run = Number(select.value);
        data.say.splice(0, N, ...says[run]);   // ui.go shows the sentence that stands there
        ui.go(ui.step);
      };
    }

    const HEAD = 22, SCORE = 84, PROBABILITY = 84, GAP = 26, BELOW = 42, CELL = 20, HATCH = 6;
    const extent = (values, end) => values.reduce((a, b) => end(a, b), 0);
    const low = extent(S, Math.min), high = Math.max(1e-6, extent(S, Math.max));
    const most = Math.max(1e-6, ...[...V, ...O].map(Math.abs));
    const at = (array, i, j, columns) => array[(run * N + i) * columns + j];

    function letters(g, size, weight = 400) { g.font = `${weight} ${size}px system-ui, sans-serif`; }
    function write(g, text, x, y, colour, align = 'center') {
      g.textAlign = align;
      g.fillStyle = colour;
      g.fillText(text, x, y);
    }
    function hatched(g, x, y, width, height) {   // a masked key
      g.save();
      g.beginPath();
      g.rect(x, y, width, height);
      g.clip();
      g.strokeStyle = ui.colour('line');
      g.lineWidth = 1;
      g.beginPath();
      for (let k = -height; k < width; k += HATCH) { g.moveTo(x + k, y + height); g.lineTo(x + k + height, y); }
      g.stroke();
      g.restore();
    }

    const LEAST = 190 + 34 * N;   // pixels in which the words can be told apart; a narrower page scrolls
    const scroll = ui.element('div', {class: 'wide', tabindex: '0', role: 'group', 'aria-label': 'scores, probabilities, values and output'}, ui.body);
    ui.canvas({
      label: 'scores, probabilities, values and output of one query', parent: scroll, maxWidth: width => Math.max(LEAST, Math.min(960, width)),
      height: () => HEAD + SCORE + GAP + PROBABILITY + BELOW + d * CELL + 8,
      paint(g, width) {
        const i = ui.step, wide = width >= 640, LEFT = wide ? 86 : 74, RIGHT = wide ? 210 : 88;
        const step = (width - LEFT - RIGHT) / N, x = j => LEFT + j * step, fg = ui.colour('fg'), dim = ui.colour('dim');
        const longest = Math.max(...words.map(word => word.length)), small = Math.max(9, Math.min(11, step / 3.6));
        const top = HEAD + 8, zero = top + (SCORE - 16) * high / (high - low), probabilityTop = HEAD + SCORE + GAP;
        const floor = probabilityTop + PROBABILITY, valueTop = floor + BELOW, beside = x(N) + 22;

        words.forEach((word, j) => {
          letters(g, Math.max(9, Math.min(13, 1.75 * step / longest)), j === i ? 700 : 400);
          write(g, word, x(j) + step / 2, 13, j === i ? ui.colour('hot-text') : fg);
          if (j === i) { g.fillStyle = ui.colour('hot'); g.fillRect(x(j) + 3, 17, step - 6, 3); }
        });
        letters(g, wide ? 12 : 10, 600);
        write(g, 'score', LEFT - 8, zero + 4, fg, 'right');
        write(g, 'probability', LEFT - 8, floor - 2, fg, 'right');
        letters(g, 11);
        write(g, '100%', LEFT - 8, probabilityTop + 4, dim, 'right');
        g.fillStyle = ui.colour('line');
        g.fillRect(LEFT, zero, N * step, 1);
        g.fillRect(LEFT, floor, N * step, 1);
        g.fillRect(LEFT, probabilityTop, N * step, 1);
        for (let j = 0; j < N; j++) {
          const score = at(S, i, j, N), probability = at(P, i, j, N), left = x(j) + 4, bar = step - 8;
          if (!at(visible, i, j, N)) {
            hatched(g, left, top, bar, SCORE - 16);
            hatched(g, left, valueTop, bar, d * CELL);
            letters(g, small);
            write(g, '\u2212\u221E', x(j) + step / 2, HEAD + SCORE + 10, dim);
            continue;
          }
          const tall = (SCORE - 16) * score / (high - low);
          g.fillStyle = ui.colour('A', 0.85);
          g.fillRect(left, Math.min(zero, zero - tall), bar, Math.max(1, Math.abs(tall)));
          letters(g, small);
          write(g, labkitFixed(score, 1), x(j) + step / 2, HEAD + SCORE + 10, dim);
          g.fillStyle = ui.colour('B');
          g.fillRect(left, floor - PROBABILITY * probability, bar, PROBABILITY * probability);
          letters(g, small, probability > 0.1 ? 650 : 400);
          write(g, Math.round(100 * probability) + '%', x(j) + step / 2, floor + 14, probability > 0.1 ? fg : dim);
          for (let k = 0; k < d; k++) {
            const value = V[(run * N + j) * d + k], y = valueTop + k * CELL;
            g.fillStyle = ui.colour('cell');
            g.fillRect(left, y, bar, CELL - 2);
            g.fillStyle = ui.colour('B', Math.min(1, probability));
            g.fillRect(left, y, bar, CELL - 2);
            if (value === 0) continue;
            const ink = ui.ink(ui.colour('cell'), g.fillStyle);
            letters(g, Math.min(12, small + 1), 600);
            write(g, String(Math.round(100 * value) / 100), x(j) + step / 2, y + 13, ink);
          }
        }
        features.forEach((name, k) => {
          letters(g, wide ? 12 : 9);
          write(g, name, LEFT - 6, valueTop + k * CELL + 13, fg, 'right');
          const value = at(O, i, k, d), room = RIGHT - 22 - 44, size = room * Math.abs(value) / most;
          g.fillStyle = g.strokeStyle = ui.colour('C');
          g.lineWidth = 1.5;
          if (value < 0) g.strokeRect(beside + 0.75, valueTop + k * CELL + 0.75, Math.max(1, size - 1.5), CELL - 3.5);
          else g.fillRect(beside, valueTop + k * CELL, Math.max(1, size), CELL - 2);
          letters(g, 12, 600);
          write(g, labkitFixed(value, 2), beside + size + 5, valueTop + k * CELL + 13, fg, 'left');
        });
        letters(g, 12, 600);
        write(g, 'values V, one column for each word', LEFT + 4, valueTop - 7, fg, 'left');
        g.textAlign = 'left';
        ui.name(g, wide ? `O of \u201C${words[i]}\u201D` : 'O', beside, valueTop - 7, 'C');
        if (!wide) return;
        const cell = Math.min(14, (RIGHT - 30) / N), corner = HEAD + 14;
        write(g, 'P, all queries', beside, 13, fg, 'left');
        for (let q = 0; q < N; q++) {
          for (let j = 0; j < N; j++) {
            const left = beside + j * cell, y = corner + q * cell;
            g.fillStyle = ui.colour('cell');
            g.fillRect(left, y, cell - 1, cell - 1);
            if (!at(visible, q, j, N)) { hatched(g, left, y, cell - 1, cell - 1); continue; }
            g.fillStyle = ui.colour('B', Math.min(1, at(P, q, j, N)));
            g.fillRect(left, y, cell - 1, cell - 1);
          }
        }
        g.strokeStyle = ui.colour('hot');
        g.lineWidth = 2;
        g.strokeRect(beside - 1.5, corner + i * cell - 1.5, N * cell + 2, cell + 2);
      },
    });
    const numbers = labels.map(text => ui.stat(text));
    const masked = visible.some(seen => !seen);
    ui.legend([['hot', 'the query of this step'], ['A', 'scores, a row of S', 0.85], ['B', 'probabilities, a row of P; each value is as strongly coloured as its probability'],
      ['C', 'the output, a row of O'], ...O.some(value => value < 0) ? [['C', 'hollow: negative', 'outline']] : [], ...masked ? [['line', 'hatched: masked', 'outline']] : []]);
    return step => numbers.forEach((show, k) => show(stats[run][step][k]));
  },
};
