// Roofs of a chosen GPU and precision, and marks of kernels under them, between logarithmic axes that stay as they are,
// so that a GPU's roofs can be seen to rise and move.

const X = [0.05, 50000], Y = [0.02, 8000];   // FLOP/byte, TFLOP/s
const MARGIN = {left: 52, right: 14, top: 10, bottom: 38};
// Where a name may stand beside its mark, the nearest first: to the right or left, so many pixels further down.
const SPOTS = [0, 13, -13, 26, -26, 39, -39, 52, -52].flatMap(down => [[1, down], [-1, down]]);
const APART = 13;   // pixels between names that stand in a column
const COLUMN = 3;   // so many marks one above the other have their names in a column, in the order of the marks

// Places in the order of those wanted, at least so far apart, and as near to them as that allows.
function spread(wanted, apart) {
  const runs = [];
  wanted.forEach((at, i) => {
    let run = {sum: at - i * apart, count: 1};
    while (runs.length && runs.at(-1).sum / runs.at(-1).count > run.sum / run.count) {
      const {sum, count} = runs.pop();
      run = {sum: sum + run.sum, count: count + run.count};
    }
    runs.push(run);
  });
  return runs.flatMap(({sum, count}) => Array(count).fill(sum / count)).map((at, i) => at + i * apart);
}

const view = {
  start(ui, data) {
    const bar = ui.element('div', {class: 'sliders'}, ui.body);
    const choice = name => {
      const label = ui.element('label', {text: name + ' '}, bar);
      return ui.element('select', {'aria-label': name}, label);
    };
    const gpus = choice('GPU'), precisions = choice('precision');
    const said = ui.element('p', {class: 'say', 'aria-live': 'polite'}, ui.body);
    data.gpus.forEach(({name}) => ui.element('option', {value: name, text: name}, gpus));
    gpus.value = data.gpu;
    let wanted = data.precision;   // kept when a GPU does not have it, for the next that does

    const gpu = () => data.gpus.find(({name}) => name === gpus.value);
    const precision = () => precisions.value;
    const roof = (figures, kind, at) => Math.min(figures.dram_gb_s * at / 1000, figures.peaks[kind]);
    const ridge = (figures, kind) => figures.peaks[kind] * 1000 / figures.dram_gb_s;
    const three = value => Number(value.toPrecision(3)).toLocaleString('en');
    const speed = tflops => tflops >= 1 ? three(tflops) + ' TFLOP/s' : three(tflops * 1000) + ' GFLOP/s';

    function offer() {   // the precisions that this GPU has
      precisions.replaceChildren();
      for (const kind of Object.keys(gpu().peaks)) ui.element('option', {value: kind, text: kind}, precisions);
      precisions.value = wanted in gpu().peaks ? wanted : 'float32';
    }
    offer();

    // Boxes for the names of marks: beside its mark, or tied to it, and in a column where many marks stand above another.
    function placed(named, inside, struck, taken) {
      const meet = box => other => box[0] <= other[1] && other[0] <= box[1] && box[2] <= other[3] && other[2] <= box[3];
      const clashes = box => taken.filter(meet(box)).length + (struck(box) ? 0.5 : 0) + (inside(box) ? 0 : 1000);
      const best = choices => choices.reduce((one, other) => other.cost < one.cost ? other : one);
      const found = [], alone = [];
      const groups = [];
      for (const mark of [...named].sort((one, other) => one.x - other.x)) {
        const last = groups.at(-1);
        if (last && mark.x - last.at(-1).x < 6) last.push(mark); else groups.push([mark]);
      }
      for (const group of groups) {
        if (group.length < COLUMN) { alone.push(...group); continue; }
        group.sort((one, other) => one.y - other.y);
        const heights = spread(group.map(mark => mark.y), APART);
        const left = Math.min(...group.map(mark => mark.x)), right = Math.max(...group.map(mark => mark.x));
        const {boxes} = best([1, -1].map(side => {
          const boxes = group.map((mark, i) => {
            const from = side > 0 ? right + 22 : left - 22 - mark.wide;
            return [from, from + mark.wide, heights[i] - 7, heights[i] + 6];
          });
          return {boxes, cost: boxes.map(clashes).reduce((sum, cost) => sum + cost, 0)};
        }));
        group.forEach((mark, i) => found.push({mark, box: boxes[i], tied: true}));
        taken.push(...boxes);
      }
      const height = mark => Math.round(mark.y / APART);   // of marks at one height the rightmost is first: it has room
      alone.sort((one, other) => height(one) - height(other) || other.x - one.x);
      const tie = (mark, box) => [mark.x, mark.y, box[0] > mark.x ? box[0] : box[1], (box[2] + box[3]) / 2];
      const side = ([a, b, c, d], x, y) => Math.sign((c - a) * (y - b) - (d - b) * (x - a));
      const cross = one => other => side(one, other[0], other[1]) !== side(one, other[2], other[3])
        && side(other, one[0], one[1]) !== side(other, one[2], one[3]);
      const ties = [];
      const written = found.map(({box}) => box);
      const under = ([a, b, c, d]) => written.filter(box => [0.2, 0.4, 0.6, 0.8].some(f => {
        const at = a + f * (c - a), from = b + f * (d - b);
        return box[0] < at && at < box[1] && box[2] < from && from < box[3];
      })).length;
      for (const mark of alone) {
        const {box, tied} = best(SPOTS.map(([side, down], i) => {
          const away = down ? 22 : 11, from = side > 0 ? mark.x + away : mark.x - away - mark.wide;
          const box = [from, from + mark.wide, mark.y + down - 7, mark.y + down + 6];
          const crossed = down ? ties.filter(cross(tie(mark, box))).length + under(tie(mark, box)) : 0;
          return {box, tied: down !== 0, cost: clashes(box) + crossed + i / 40};
        }));
        if (tied) ties.push(tie(mark, box));
        written.push(box);
        found.push({mark, box, tied});
        taken.push(box);
      }
      return found;
    }

    // The marks of a kernel on this GPU: [kind, TFLOP/s].
    const marks = kernel => [['best', kernel.best[gpus.value]], ['measured', kernel.measured[gpus.value]]].filter(mark => mark[1]);

    // A sentence for a precision at which the picture has no kernel on this GPU; else nothing.
    function emptiness() {
      const drawn = data.kernels.some(kernel => kernel.precision === precision() && marks(kernel).length);
      return drawn ? [] : [`No kernel here computes in ${precision()}.`];
    }

    const canvas = ui.canvas({
      label: 'roofline', height: width => width < 640 ? 380 : 440,
      paint(g, width, height) {
        const x = value => MARGIN.left + (width - MARGIN.left - MARGIN.right) * Math.log(value / X[0]) / Math.log(X[1] / X[0]);
        const y = value => height - MARGIN.bottom - (height - MARGIN.top - MARGIN.bottom) * Math.log(value / Y[0]) / Math.log(Y[1] / Y[0]);
        const text = (words, at, from, align, colour, font = '12px system-ui, sans-serif') => {
          Object.assign(g, {textAlign: align, fillStyle: ui.colour(colour), font, strokeStyle: ui.colour('card'), lineWidth: 4, lineJoin: 'round'});
          g.strokeText(words, at, from);   // no line behind it strikes it through
          g.fillText(words, at, from);
        };
        const line = (points, colour, thick, dash = []) => {
          g.beginPath();
          points.forEach(([a, b]) => g.lineTo(x(a), y(b)));
          Object.assign(g, {strokeStyle: ui.colour(colour), lineWidth: thick});
          g.setLineDash(dash);
          g.stroke();
          g.setLineDash([]);
        };
        for (let at = -1; at <= 4; at++) {
          line([[10 ** at, Y[0]], [10 ** at, Y[1]]], 'line', 1);
          text(three(10 ** at), x(10 ** at), height - MARGIN.bottom + 16, 'center', 'dim');
        }
        for (let at = -1; at <= 3; at++) {
          line([[X[0], 10 ** at], [X[1], 10 ** at]], 'line', 1);
          text(three(10 ** at), MARGIN.left - 6, y(10 ** at) + 4, 'right', 'dim');
        }
        text('arithmetic intensity (FLOP / byte of DRAM)', (MARGIN.left + width) / 2, height - 4, 'center', 'dim');
        g.save();
        g.translate(11, (height - MARGIN.bottom) / 2);
        g.rotate(-Math.PI / 2);
        text('TFLOP/s', 0, 0, 'center', 'dim');
        g.restore();

        const figures = gpu(), chosen = precision();
        const taken = [];   // boxes of marks and names: [left, right, top, bottom]
        const free = box => taken.every(other => box[1] < other[0] || other[1] < box[0] || box[3] < other[2] || other[3] < box[2]);
        const others = Object.keys(figures.peaks).filter(kind => kind !== chosen);
        for (const kind of others) line([[ridge(figures, kind), figures.peaks[kind]], [X[1], figures.peaks[kind]]], 'dim', 1, [5, 4]);
        const corner = ridge(figures, chosen), peak = figures.peaks[chosen];
        line([[X[0], roof(figures, chosen, X[0])], [corner, peak], [X[1], peak]], 'fg', 2.4);
        line([[corner, Y[0]], [corner, peak]], 'fg', 1, [2, 4]);
        text(`ridge ${three(corner)}`, x(corner) + 5, y(Y[0]) - 7, 'left', 'fg');
        taken.push([x(corner), x(corner) + 62, y(Y[0]) - 20, y(Y[0])]);
        for (const kind of others) {   // the name of each roof that has room for it
          const box = [width - MARGIN.right - 6.2 * kind.length, width, y(figures.peaks[kind]) - 15, y(figures.peaks[kind])];
          if (!free(box)) continue;
          taken.push(box);
          text(kind, width - MARGIN.right, y(figures.peaks[kind]) - 4, 'right', 'dim', '11px system-ui, sans-serif');
        }

        const shown = data.kernels.map(kernel => [kernel, marks(kernel)]).filter(([, places]) => places.length);
        for (const [{intensity}, places] of shown)
          for (const [, tflops] of places) taken.push([x(intensity) - 6, x(intensity) + 6, y(tflops) - 6, y(tflops) + 6]);
        const named = shown.filter(([{precision}]) => precision === chosen).map(([kernel, places]) => {
          g.font = '12px system-ui, sans-serif';
          return {name: kernel.name, wide: g.measureText(kernel.name).width, x: x(kernel.intensity), y: y(places.at(-1)[1])};
        });
        const inside = box => box[0] > MARGIN.left && box[1] < width && box[2] > 0 && box[3] < height - MARGIN.bottom;
        const slope = at => Math.max(y(peak), y(peak) + (x(corner) - at) * (y(0.1) - y(1)) / (x(1) - x(0.1)));   // the roof's height
        const flat = others.map(kind => [x(ridge(figures, kind)), y(figures.peaks[kind])]);   // where the other roofs begin
        const struck = box => slope(box[1]) <= box[3] + 4 && slope(box[0]) >= box[2] - 4
          || flat.some(([from, at]) => from <= box[1] && box[2] - 2 <= at && at <= box[3] + 2);
        const names = placed(named, inside, struck, taken);
        for (const {mark, box, tied} of names) {
          if (!tied) continue;
          g.beginPath();
          g.moveTo(mark.x, mark.y);
          g.lineTo(box[0] > mark.x ? box[0] - 2 : box[1] + 2, (box[2] + box[3]) / 2);
          Object.assign(g, {strokeStyle: ui.colour('dim'), lineWidth: .7});
          g.stroke();
        }
        for (const [kernel, places] of shown) {
          const mine = kernel.precision === chosen;
          const at = kernel.intensity;
          if (places.length > 1) line(places.map(([, tflops]) => [at, tflops]), 'dim', 1, [1, 3]);
          for (const [kind, tflops] of places) {
            g.beginPath();
            g.arc(x(at), y(tflops), kind === 'best' ? 5.5 : 4.5, 0, 7);
            if (kind === 'best') {
              Object.assign(g, {strokeStyle: ui.colour(mine ? 'A' : 'dim'), lineWidth: 2});
              g.stroke();
            } else {
              g.fillStyle = ui.colour(mine ? 'D' : 'dim');
              g.fill();
            }
          }
        }
        for (const {mark, box} of names) text(mark.name, box[0], box[3] - 3, 'left', 'fg');   // the table has those of other precisions
        emptiness().forEach((words, i) => {   // above the name of the ridge
          text(words, width - MARGIN.right - 4, height - MARGIN.bottom - 44 + 16 * i, 'right', 'fg', '650 12px system-ui, sans-serif');
        });
        const name = `${speed(peak)} ${chosen}`;
        g.font = '650 12px system-ui, sans-serif';
        const wide = g.measureText(name).width, from = Math.max(MARGIN.left + 4, x(corner) - 6 - wide);   // over the slope is room
        const over = [6, 20, 34, 48, 62].find(over => free([from, from + wide, y(peak) - over - 11, y(peak) - over + 3])) ?? 6;
        text(name, from, y(peak) - over, 'left', 'fg', g.font);
      },
    });
    ui.legend([['A', 'at best on this GPU', 'ring'], ['D', 'measured on this GPU', 'dot'], ['dim', 'of another precision', 'dot'], ['fg', 'roofs of the precision chosen', 'line'], ['dim', 'of other precisions', 'line']]);

    const fold = ui.element('details', {}, ui.body);
    ui.element('summary', {text: 'Kernels on this GPU: FLOP/byte and speeds'}, fold);
    const sheet = ui.element('div', {class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'kernels on this GPU'}, fold);
    function numbers() {
      const list = ui.element('table', {});
      const head = ui.element('tr', {}, ui.element('thead', {}, list));
      for (const title of ['kernel', 'precision', 'FLOP / byte', 'at best', 'measured', 'of the roof there'])
        ui.element('th', {scope: 'col', text: title}, head);
      const body = ui.element('tbody', {}, list);
      const first = kernel => kernel.precision === precision() ? 0 : 1;
      for (const kernel of [...data.kernels].sort((one, other) => first(one) - first(other))) {
        const best = kernel.best[gpus.value], measured = kernel.measured[gpus.value];
        const has = kernel.precision in gpu().peaks;
        const row = ui.element('tr', {}, body);
        const share = measured && has ? (100 * measured / roof(gpu(), kernel.precision, kernel.intensity)).toFixed(0) + '%' : '';
        for (const cell of [kernel.name, kernel.precision, three(kernel.intensity), best ? speed(best) : 'cannot run here', measured ? speed(measured) : '', share])
          ui.element('td', {text: cell}, row);
      }
      sheet.replaceChildren(list);
    }

    function sentence() {
      const figures = gpu(), corner = ridge(figures, precision());
      const here = data.kernels.filter(kernel => kernel.precision === precision() && marks(kernel).length);
      const right = here.filter(kernel => kernel.intensity >= corner).length;
      const recorded = here.some(kernel => kernel.measured[gpus.value]);
      const all = `${here.length} kernel${here.length === 1 ? '' : 's'} at this precision`;
      const counted = here.length === 0 ? emptiness().join(' ')
        : `Of ${all}, ${here.length - right || 'none'} are to the left of it, where memory is the roof, and ${right || 'none'} to the right.`
        + (recorded ? '' : ' Nothing is recorded for them on this GPU.');
      ui.say(said, `\`${figures.name}\` at ${precision()}: DRAM moves ${three(figures.dram_gb_s / 1000)} TB/s, arithmetic goes to `
        + `${speed(figures.peaks[precision()])}, and the two meet at **${three(corner)} FLOP/byte**. ${counted}`);
    }

    function follow() { sentence(); numbers(); ui.go(0); }
    gpus.onchange = () => { offer(); follow(); };
    precisions.onchange = () => { wanted = precisions.value; follow(); };
    sentence();
    numbers();
  },
};
