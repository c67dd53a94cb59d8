// Above, the exponentials of the keys that have arrived; below, the accumulator, an element a bar. In a step that rescales,
// outlines stay where the bars were before. Both scales are fixed over all steps.

const view = {
  start(ui, data) {
    const {heights, acc, rescales, stats, tile} = data, LEFT = 44;
    function bars(values, {label, title, tall, colour, gap}) {
      const count = values.shape[1];
      const low = Math.min(0, ...values), high = Math.max(0, ...values);
      ui.canvas({
        label, maxWidth: 900, height: () => tall,
        paint(g, width, height) {
          const step = (width - LEFT - 8) / count, top = 26, y = value => top + (height - top - 6) * (high - value) / (high - low);
          g.fillStyle = ui.colour('fg');
          g.font = '600 13px system-ui, sans-serif';
          g.textAlign = 'left';
          g.fillText(title, LEFT, 13);
          g.font = '11px system-ui, sans-serif';
          g.textAlign = 'right';
          for (const value of low < 0 ? [high, 0, low] : [high, 0]) {
            g.fillStyle = ui.colour('dim');
            g.fillText(value === 0 ? '0' : labkitFixed(value, 1), LEFT - 6, y(value) + 4);
            g.fillStyle = ui.colour('line');
            g.fillRect(LEFT, y(value), width - LEFT - 8, 1);
          }
          if (gap) for (let i = tile; i < count; i += tile) g.fillRect(LEFT + i * step - 0.5, top, 1, height - top - 6);
          const bar = (at, i) => [LEFT + i * step + step * 0.1, Math.min(y(0), y(values[at * count + i])), step * 0.8, Math.abs(y(values[at * count + i]) - y(0))];
          for (let i = 0; i < count; i++) {
            const is_new = gap && !rescales[ui.step] && (ui.step === 0 || values[(ui.step - 1) * count + i] === 0);
            g.fillStyle = ui.colour(is_new ? 'hot' : colour, 0.9);
            g.fillRect(...bar(ui.step, i));
            if (!rescales[ui.step] || values[(ui.step - 1) * count + i] === 0) continue;
            g.strokeStyle = ui.colour('dim');
            g.lineWidth = 1;
            g.strokeRect(...bar(ui.step - 1, i));
          }
        },
      });
    }
    bars(heights, {label: 'exponentials of the scores', title: 'exp(score \u2212 maximum), a bar per key', tall: 130, colour: 'A', gap: true});
    bars(acc, {label: 'the accumulator', title: 'accumulator of O, a bar per element of head_dim', tall: 170, colour: 'C'});
    const numbers = stats.labels.map(text => ui.stat(text));
    ui.legend([['hot', 'the tile that is added'], ['A', 'earlier tiles'], ['C', 'accumulator'], ['dim', 'before the rescaling', 'outline'], ['line', 'edges of tiles', 'bar']]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};
