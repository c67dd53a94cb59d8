// Above, memory and the chip, with arrows for what the launch of this step moves between them. Below, a bar for each run:
// a piece for each pass of each launch, as wide as the bytes that it moves. Dashes mark passes that only the run above has.

const view = {
  start(ui, data) {
    const {runs, arrays, steps, stats} = data;
    const EACH = Math.max(18, 54 / arrays.length), MEMORY = 24 + arrays.length * EACH;   // a name fits into an array's box
    const most = Math.max(3, ...runs.map(run => run.total)), ROW = 34, TOP = MEMORY + 14, LEFT = 118, RIGHT = 78;
    const colour = ({kind, array}) => kind === 'store' ? 'C' : array === arrays[0] ? 'A' : 'B';
    const short = ({kind, array}, room) => room > 74 ? `${kind === 'store' ? 'write' : 'read'} ${array}` : `${kind === 'store' ? 'w' : 'r'} ${array}`;
    const number = value => String(Math.round(value * 100) / 100);
    const letters = (g, size, weight = 400) => { g.font = `${weight} ${size}px system-ui, sans-serif`; };

    function arrow(g, from, to, y, paint, wide) {
      const way = Math.sign(to - from);
      g.strokeStyle = g.fillStyle = paint;
      g.lineWidth = wide;
      g.beginPath();
      g.moveTo(from, y);
      g.lineTo(to - way * 9, y);
      g.stroke();
      g.beginPath();
      g.moveTo(to, y);
      g.lineTo(to - way * 11, y - 7);
      g.lineTo(to - way * 11, y + 7);
      g.fill();
    }

    // memory on the left with its arrays, the kernel on the right
    function moved(g, width, launch) {
      const room = width, chip = room - 190, high = MEMORY;
      const traffic = arrays.map(array => ['load', 'store'].map(kind => launch.passes.filter(one => one.array === array && one.kind === kind)));
      letters(g, 12);
      g.textAlign = 'left';
      g.strokeStyle = ui.colour('line');
      g.lineWidth = 1;
      g.strokeRect(0.5, 0.5, 150, high);
      g.strokeRect(chip + 0.5, 0.5, 189, high);
      g.fillStyle = ui.colour('dim');
      g.fillText('memory', 8, 15);
      g.fillText('on the chip', chip + 8, 15);
      letters(g, 14, 650);
      g.textAlign = 'center';
      g.fillStyle = ui.colour('fg');
      g.fillText(launch.kernel, chip + 95, high / 2 + 8);
      arrays.forEach((array, i) => {
        const [loads, stores] = traffic[i], y = 22 + i * EACH, busy = loads.length + stores.length;
        const looks = stores.length && (i || !loads.length) ? 'C' : i ? 'B' : 'A';
        g.fillStyle = busy ? ui.colour(looks, 0.85) : ui.colour('cell');
        g.fillRect(8, y, 134, EACH - 4);
        letters(g, 12, 650);
        g.fillStyle = busy ? ui.ink(g.fillStyle) : ui.colour('dim');
        g.fillText(array, 75, y + EACH / 2 + 2);
        const lines = [...loads.map(one => [158, chip - 8, one]), ...stores.map(one => [chip - 8, 158, one])];
        lines.forEach(([from, to, one], k) =>
          arrow(g, from, to, y + (EACH - 4) * (k + 0.5) / lines.length, ui.colour(colour(one)), 4));
      });
    }

    ui.canvas({
      label: 'bars of passes over memory, one for each run, that grow launch by launch', maxWidth: 900,
      height: () => TOP + runs.length * ROW + 22,
      paint(g, width) {
        const [now, launch] = steps[ui.step];
        letters(g, 11, 650);
        const left = width < 600 ? Math.max(84, ...runs.map(run => g.measureText(run.name).width + 10)) : LEFT;
        const unit = (width - left - RIGHT) / most;
        moved(g, width, runs[now].launches[launch]);
        let before = null;
        runs.forEach((run, row) => {
          const y = TOP + row * ROW, high = ROW - 10, reached = row <= now;
          letters(g, width < 600 ? 11 : 13, row === now ? 650 : 400);
          g.textAlign = 'right';
          g.fillStyle = ui.colour(reached ? 'fg' : 'dim');
          g.fillText(run.name, left - 8, y + high / 2 + 5);
          if (!reached) return;
          let x = left, sum = 0;
          run.launches.slice(0, row === now ? launch + 1 : undefined).forEach((one, at) => {
            const hot = row === now && at === launch, begin = x;
            for (const part of one.passes) {
              const wide = part.passes * unit;
              g.fillStyle = ui.colour(colour(part), row === now ? 1 : 0.8);
              g.fillRect(x, y, wide - 1.5, high);
              letters(g, Math.max(9, Math.min(12, unit * 0.3)));
              g.textAlign = 'center';
              g.fillStyle = ui.ink(g.fillStyle);
              const words = short(part, wide);
              if (g.measureText(words).width < wide) g.fillText(words, x + wide / 2, y + high / 2 + 4);
              x += wide;
              sum += part.passes;
            }
            if (hot) {
              g.strokeStyle = ui.colour('hot');
              g.lineWidth = 3;
              g.strokeRect(begin - 1, y - 2, x - begin + 1, high + 4);
            }
            g.fillStyle = ui.colour('ink');   // where a launch ends
            g.fillRect(x - 2, y - 3, 2.5, high + 6);
          });
          const whole = row < now || launch + 1 === run.launches.length;
          if (whole && before > sum) {
            g.setLineDash([4, 4]);
            g.strokeStyle = ui.colour('dim');
            g.lineWidth = 1;
            g.strokeRect(x + 4, y + 0.5, (before - sum) * unit - 5, high - 1);
            g.setLineDash([]);
          }
          letters(g, 15, 650);
          g.textAlign = 'left';
          g.fillStyle = ui.colour(whole ? 'fg' : 'dim');
          g.fillText(number(sum), (whole && before > sum ? left + before * unit : x) + 8, y + high / 2 + 5);
          before = sum;
        });
        letters(g, 12);
        g.textAlign = 'left';
        g.fillStyle = ui.colour('dim');
        const told = 'a piece as wide as this is one pass';
        g.fillText(told, Math.min(left + unit + 8, width - g.measureText(told).width), TOP + runs.length * ROW + 14);
        g.fillStyle = ui.colour('dim');
        g.fillRect(left, TOP + runs.length * ROW + 8, unit - 1.5, 3);
      },
    });
    const parts = runs.flatMap(run => run.launches.flatMap(launch => launch.passes));
    const others = arrays.slice(1).filter(name => parts.some(({array, kind}) => array === name && kind === 'load'));
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([['A', `reads of ${arrays[0]}`], ...others.length ? [['B', `reads of ${others.join(', ')}`]] : [],
      ['C', 'writes'], ['hot', 'the launch of this step', 'outline'], ['ink', 'a launch ends', 'bar'],
      ...runs.length > 1 ? [['dim', 'passes that only the run above has', 'dashed']] : []]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};
