// A row per barrier: at the left what its phase waits for now, arrivals as circles and bytes as a bar; at the right its
// phases over time, those of parity 1 darker and underlined, with a line below them while a warp waits.
const view = {
  start(ui, data) {
    const {names, states, at} = data, ROW = 62, TOP = 40, NAME = 82, BYTES = 110, LEFT = 330, WIDE = 22;
    const PHASE = 0, COUNT = 1, PENDING = 2, EXPECTED = 3, ARRIVED = 4, WAITING = 5;
    ui.canvas({
      label: 'barriers, what their phases wait for, and their phases over time', height: () => TOP + names.length * ROW + 8,
      paint(g, width) {
        const room = Math.floor((width - LEFT) / WIDE), first = Math.max(0, Math.min(ui.step - Math.floor(room * 0.6), ui.steps - room));
        const last = Math.min(ui.steps, first + room), now = states[ui.step];
        g.textBaseline = 'middle';
        const write = (text, x, y, colour = 'dim', font = '12px system-ui, sans-serif', align = 'left') => {
          g.fillStyle = ui.colour(colour);
          g.font = font;
          g.textAlign = align;
          g.fillText(text, x, y);
        };
        [['barrier', 0], ['arrived', NAME], ['bytes', NAME + 58], ['phases over time', LEFT]].forEach(([text, x]) => write(text, x, 12));
        names.forEach((name, row) => {
          const y = TOP + row * ROW, state = now[row], here = at[ui.step] === row;
          const before = ui.step ? states[ui.step - 1][row] : state, flipped = here && before[PHASE] !== state[PHASE];
          write(name, 0, y + 11, here ? 'hot-text' : 'fg', `${here ? '700 ' : ''}13px ui-monospace, Menlo, monospace`);
          if (state[COUNT] > 4) write(`${state[COUNT] - state[PENDING]} of ${state[COUNT]}`, NAME, y + 11, 'fg');
          else for (let i = 0; i < state[COUNT]; i++) {
            g.beginPath();
            g.arc(NAME + 8 + i * 13, y + 11, 5, 0, 7);
            g.strokeStyle = ui.colour('fg');
            g.lineWidth = 1.5;
            if (i < state[COUNT] - state[PENDING]) { g.fillStyle = ui.colour('fg'); g.fill(); }
            g.stroke();
          }
          const x = NAME + 58;
          g.fillStyle = ui.colour('cell');
          g.fillRect(x, y + 2, BYTES, 18);
          if (state[EXPECTED]) {
            g.fillStyle = ui.colour('B', 0.35);
            g.fillRect(x, y + 2, BYTES, 18);
            g.fillStyle = ui.colour('B');
            g.fillRect(x, y + 2, BYTES * state[ARRIVED] / state[EXPECTED], 18);
            write(`${state[ARRIVED].toLocaleString('en')} of ${state[EXPECTED].toLocaleString('en')}`, x + 4, y + 11, 'fg', '11px system-ui, sans-serif');
          } else write('none expected', x + 4, y + 11, 'dim', '11px system-ui, sans-serif');
          write(`phase ${state[PHASE]}, parity ${state[PHASE] % 2}`, x, y + 33, flipped ? 'hot-text' : 'fg', `${flipped ? '700 ' : ''}12px system-ui, sans-serif`);

          for (let step = first; step < last; step++) {
            const each = states[step][row], left = LEFT + (step - first) * WIDE, past = step <= ui.step, odd = each[PHASE] % 2 === 1;
            const begins = step === first || states[step - 1][row][PHASE] !== each[PHASE];
            g.fillStyle = ui.colour('A', (odd ? 1 : 0.35) * (past ? 1 : 0.3));
            g.fillRect(left + (begins ? 2 : 0), y, WIDE - (begins ? 2 : 0), 24);
            if (odd) {   // which colour alone does not say of a phase to come
              g.fillStyle = ui.colour('fg', past ? 1 : 0.5);
              g.fillRect(left + (begins ? 2 : 0), y + 21, WIDE - (begins ? 2 : 0), 3);
            }
            if (begins) write(each[PHASE], left + WIDE / 2 + 1, y + 12, odd && past ? 'card' : 'fg', '700 12px ui-monospace, Menlo, monospace', 'center');
            if (at[step] === row) {
              g.fillStyle = ui.colour(past ? 'fg' : 'dim');
              g.fillRect(left + WIDE / 2 - 2, y - 7, 5, 5);
            }
            if (each[WAITING].length) {
              g.fillStyle = ui.colour('hot', past ? 1 : 0.35);
              g.fillRect(left, y + 28, WIDE, 4);
              const starts = step === first || !states[step - 1][row][WAITING].length;
              if (starts) write(`warp${each[WAITING].length > 1 ? 's' : ''} ${each[WAITING].join(', ')}`, left, y + 40, 'hot-text', '11px system-ui, sans-serif');
            }
          }
        });
        g.strokeStyle = ui.colour('hot');
        g.lineWidth = 2;
        g.strokeRect(LEFT + (ui.step - first) * WIDE, TOP - 14, WIDE, names.length * ROW + 4);
      },
    });
    ui.legend([
      ['A', 'phase of parity 0', 0.35], ['A', 'phase of parity 1, underlined'], ['B', 'bytes expected', 0.35], ['B', 'bytes that have arrived'],
      ['fg', 'something happens at this barrier'], ['hot', 'a warp waits', 'line'], ['hot', 'now', 'outline'],
    ]);
    return null;
  },
};
