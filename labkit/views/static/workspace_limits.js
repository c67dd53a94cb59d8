// A dot for each algorithm: its workspace to the right, its predicted time up, both logarithmic. A line is the limit of
// the step; what is right of it is faint, and the lowest of the others is ringed. Axes are the same at every step.

const view = {
  start(ui, data) {
    const {steps, limits, looks, smallest_mb} = data;
    const all = steps.flat(), most = Math.max(...all.map(dot => dot.workspace_mb)) * 1.3;
    const low = Math.min(...all.map(dot => dot.time_ms)) / 1.15, high = Math.max(...all.map(dot => dot.time_ms)) * 1.15;
    ui.canvas({
      label: 'predicted time over workspace, an algorithm a dot', maxWidth: 900, height: () => 330,
      paint(g, width, height) {
        const left = 52, right = width - 128, top = 24, floor = height - 38;
        const x = mb => left + 12 + (right - left - 12) * Math.log(Math.max(mb, smallest_mb) / smallest_mb) / Math.log(most / smallest_mb);
        const y = ms => floor - (floor - top) * Math.log(ms / low) / Math.log(high / low);
        const text = (words, px, py, colour, weight = 400, align = 'left', size = 12) => {
          g.font = `${weight} ${size}px system-ui, sans-serif`;
          g.fillStyle = ui.colour(colour);
          g.textAlign = align;
          g.fillText(words, px, py);
        };
        const limit = limits[ui.step], dots = steps[ui.step];
        const edge = limit === null ? width : limit === 0 ? x(smallest_mb) + 12 : x(limit);
        g.fillStyle = ui.colour('cell');
        if (edge < width) g.fillRect(edge, top, width - edge, floor - top);
        for (let mb = smallest_mb; mb <= most; mb *= 10) text(mb === smallest_mb ? `${mb} or less` : mb.toLocaleString('en'), x(mb), floor + 16, 'dim', 400, 'center', 11);
        text('workspace, MB', (left + right) / 2, floor + 32, 'dim', 400, 'center', 11);
        for (const ms of [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]) {
          if (ms < low || ms > high) continue;
          g.fillStyle = ui.colour('line');
          g.fillRect(left, y(ms), right - left, 1);
          text(`${ms} ms`, left - 6, y(ms) + 4, 'dim', 400, 'right', 11);
        }
        if (edge < width) {
          g.fillStyle = ui.colour('fg');
          g.fillRect(edge - 1, top, 2, floor - top);
          text(limit === 0 ? 'no workspace' : `limit: ${limit.toLocaleString('en')} MB`, edge - 1, top - 8, 'fg', 650);
        }
        const taken = [];   // where names stand
        for (const dot of [...dots].sort((one, other) => one.time_ms - other.time_ms)) {   // from the lowest up
          const rank = dots.indexOf(dot), px = x(dot.workspace_mb), py = y(dot.time_ms), [colour] = looks[dot.name.split('/')[0]];
          g.fillStyle = ui.colour(colour, dot.fits ? 1 : 0.3);
          g.beginPath();
          g.arc(px, py, 6, 0, 7);
          g.fill();
          if (rank === 0) {
            g.strokeStyle = ui.colour('fg');
            g.lineWidth = 2.5;
            g.beginPath();
            g.arc(px, py, 10, 0, 7);
            g.stroke();
          }
          let ty = py + 4;
          while (taken.some(([ox, oy]) => Math.abs(ox - px) < 118 && Math.abs(oy - ty) < 12)) ty -= 4;
          taken.push([px, ty]);
          text(dot.name, px + 14, ty, dot.fits ? 'fg' : 'dim', rank === 0 ? 650 : 400, 'left', 11);
        }
      },
    });
    ui.legend([...Object.entries(looks).map(([family, [colour]]) => [colour, family, 'dot']), ['fg', 'ranked first', 'ring'], ['cell', 'over the limit']]);
    return null;
  },
};
