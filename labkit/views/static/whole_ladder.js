// All ladders as rows of dots on one logarithmic scale; the ladder of the current step is unfolded, a line for each step.
// A choice above jumps to a ladder's first step.

const view = {
  start(ui, data) {
    const {ladders, firsts, steps, ratios, chapters, scale: [low, high], caption} = data;
    const ROW = 14, UNFOLDED = 17, TOP = 26, UNDER = 20, count = at => firsts[at + 1] - firsts[at];
    const most = Math.max(...ladders.map((_, at) => count(at)));
    const chosen = () => firsts.findIndex(first => first > ui.step) - 1;

    const bar = ui.element('div', {class: 'bar', style: 'margin:0 0 8px'}, ui.body);
    const choice = ui.element('select', {style: 'margin-left:6px'}, ui.element('label', {text: 'ladder'}, bar));
    ladders.forEach((name, at) => ui.element('option', {value: at, text: `${chapters[firsts[at]]} \u00B7 ${name}`}, choice));
    choice.onchange = () => ui.go(firsts[Number(choice.value)]);

    ui.canvas({
      label: 'speed of every step, relative to the fastest library', maxWidth: 970,
      height: () => TOP + (ladders.length - 1) * ROW + ROW + most * UNFOLDED + 6 + UNDER,
      paint(g, width, height) {
        const left = width < 560 ? 178 : 206, right = width - 14, bottom = height - UNDER, open = chosen();
        const x = value => left + 8 + Math.log(value / low) / Math.log(high / low) * (right - left - 8);
        const write = (text, at, y, colour, weight = 400, size = 12, mono = false) => {
          g.font = `${weight} ${size}px ${mono ? 'ui-monospace, Menlo, monospace' : 'system-ui, sans-serif'}`;
          g.fillStyle = ui.colour(colour);
          g.fillText(text, at, y);
        };
        g.textBaseline = 'middle';
        g.textAlign = 'center';
        for (let tick = low; tick < high; tick *= 10) {
          const here = Math.abs(tick - 1) < 0.01;
          g.fillStyle = ui.colour(here ? 'fg' : 'line');
          g.fillRect(x(tick), TOP - 8, here ? 1.5 : 1, bottom - TOP + 8);
          write(here ? 'library' : `${+(100 * tick).toPrecision(1)}%`, x(tick), TOP - 16, here ? 'fg' : 'dim', here ? 650 : 400, 11.5);
        }
        write('speed, relative to the fastest library recorded', (left + right) / 2, bottom + 12, 'dim', 400, 11.5);
        function dot(ratio, y, colour, radius, alpha = 1) {
          if (ratio === null) return;
          g.fillStyle = ui.colour(colour, alpha);
          g.beginPath();
          if (ratio < low) {
            g.moveTo(x(low) - 9, y);
            g.lineTo(x(low) + 1, y - 5);
            g.lineTo(x(low) + 1, y + 5);
          } else g.arc(x(ratio), y, radius, 0, 7);
          g.fill();
        }
        let y = TOP + ROW / 2;
        ladders.forEach((name, at) => {
          g.textAlign = 'right';
          write(name, left - 6, y, at === open ? 'fg' : 'dim', at === open ? 650 : 400, width < 560 ? 10 : 11.5, true);
          if (at !== open) {
            for (let i = firsts[at]; i < firsts[at + 1]; i++) dot(ratios[i], y, 'dim', 3.5, 0.6);
            y += ROW;
            return;
          }
          const begin = y;
          y += (ROW + UNFOLDED) / 2;
          for (let i = firsts[at]; i < firsts[at + 1]; i++, y += UNFOLDED) {
            const now = i === ui.step;
            if (now) {
              g.fillStyle = ui.colour('hot', 0.14);
              g.fillRect(4, y - UNFOLDED / 2, right - 4, UNFOLDED);
            }
            g.fillStyle = ui.colour('line');
            if (ratios[i] !== null) g.fillRect(left + 8, y - 0.5, Math.max(0, x(ratios[i]) - left - 8), 1);
            g.textAlign = 'right';
            write(steps[i], left - 6, y, now ? 'hot-text' : 'fg', now ? 650 : 400, width < 560 ? 10.5 : 12, true);
            dot(ratios[i], y, now ? 'hot' : 'A', now ? 6 : 4.5);
            if (ratios[i] === null) {
              g.textAlign = 'left';
              write('not recorded', left + 12, y, 'dim');
            }
          }
          g.fillStyle = ui.colour('A');
          g.fillRect(0, begin - ROW / 2, 2.5, y - begin - 2);
          y += 6 - (UNFOLDED - ROW) / 2;
        });
      },
    });
    ui.legend([['hot', 'this step', 'dot'], ['A', 'other steps of its ladder', 'dot'], ['dim', 'steps of the other ladders', 'dot']]);
    ui.element('p', {class: 'wait', text: caption}, ui.footer);
    return () => { choice.value = chosen(); };
  },
};
