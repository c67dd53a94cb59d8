// Stages as rows, time to the right: a stage is free, filled (its copy in flight or waiting), or used.
const view = {
  start(ui, data) {
    const {stages, states, tiles, at, ahead, early, loading} = data, rows = stages + (loading.length ? 1 : 0), LEFT = 58, TOP = 20, ROW = 30, WIDE = 26;
    ui.canvas({
      label: 'the stages of the ring over time', height: () => TOP + rows * ROW + 18,
      paint(g, width) {
        const room = Math.floor((width - LEFT) / WIDE), first = Math.max(0, Math.min(ui.step - Math.floor(room * 0.6), ui.steps - room));
        const last = Math.min(ui.steps, first + room), COLOURS = ['cell', 'B', 'C'];
        g.textBaseline = 'middle';
        for (let stage = 0; stage < stages; stage++) {
          const y = TOP + stage * ROW;
          g.textAlign = 'left';
          g.font = '12px system-ui, sans-serif';
          g.fillStyle = ui.colour('dim');
          g.fillText(`stage ${stage}`, 0, y + ROW / 2 - 2);
          for (let step = first; step < last; step++) {
            const state = states[step * stages + stage], x = LEFT + (step - first) * WIDE, past = step <= ui.step;
            const late = early[step] && at[step] === stage;
            g.fillStyle = ui.colour(late ? 'hot' : COLOURS[state], past ? 1 : 0.28);
            g.fillRect(x, y, state === 1 && !late ? WIDE : WIDE - 2, ROW - 5);
            const begins = step === 0 || tiles[(step - 1) * stages + stage] !== tiles[step * stages + stage] || at[step] === stage;
            if (state && begins) {
              g.fillStyle = ui.ink(g.fillStyle);
              g.font = '700 12px ui-monospace, Menlo, monospace';
              g.textAlign = 'center';
              g.fillText(tiles[step * stages + stage], x + WIDE / 2 - 1, y + ROW / 2 - 2);
            }
          }
        }
        if (loading.length) {   // between their issue and the store into a stage
          const y = TOP + stages * ROW;
          g.textAlign = 'left';
          g.font = '12px system-ui, sans-serif';
          g.fillStyle = ui.colour('dim');
          g.fillText('registers', 0, y + ROW / 2 - 2);
          for (let step = first; step < last; step++) {
            if (loading[step] < 0) continue;
            const x = LEFT + (step - first) * WIDE, past = step <= ui.step;
            g.fillStyle = ui.colour('A', past ? 1 : 0.28);
            g.fillRect(x, y, WIDE - 2, ROW - 5);
            g.fillStyle = ui.ink(g.fillStyle);
            g.font = '700 12px ui-monospace, Menlo, monospace';
            g.textAlign = 'center';
            g.fillText(loading[step], x + WIDE / 2 - 1, y + ROW / 2 - 2);
          }
        }
        const x = LEFT + (ui.step - first) * WIDE;
        g.strokeStyle = ui.colour('hot');
        g.lineWidth = 2;
        g.strokeRect(x - 2, TOP - 4, WIDE + 1, rows * ROW + 3);
        g.font = '600 12px system-ui, sans-serif';
        g.fillStyle = ui.colour('hot-text');
        g.textAlign = x > width / 2 ? 'right' : 'left';
        g.fillText(`now: ${data.who[ui.step]}`, x > width / 2 ? x + WIDE : x - 2, 8);
        g.font = '12px system-ui, sans-serif';
        g.fillStyle = ui.colour('dim');
        g.textAlign = 'left';
        g.fillText(`time, in the order of the run; numbers are tiles of k`, LEFT, TOP + rows * ROW + 9);
      },
    });
    const filled = ui.stat('tiles in flight or waiting'), free = ui.stat('stages free');
    ui.legend([
      ['B', 'copy in flight, or there and waiting'], ['C', 'being multiplied'], ['cell', 'free'],
      ...(loading.length ? [['A', 'loads from global memory in flight']] : []),
      ...(early.includes(true) ? [['hot', 'copied over a tile that is still to be used']] : []), ['hot', 'now', 'outline'],
    ]);
    return step => {
      const now = Array.from(states.subarray(step * stages, (step + 1) * stages));
      filled(ahead[step]);
      free(now.filter(state => state === 0).length);
    };
  },
};
