// Warps of one SM over time: waits, work, and above them the times in which memory answers. Beside it, how busy memory is
// over the number of warps, a line for each number of loads that a warp starts.

const view = {
  start(ui, data) {
    const {kept, chosen, warps, most_warps, shown_ns, service_ns, waits, served, wait_offsets, served_offsets, shares} = data;
    const LEFT = 62, MEMORY = 26, ROW = 4, TOP = 16, HIGH = TOP + MEMORY + 8 + most_warps * ROW + 22;
    if (kept.length > 1) {
      const label = ui.element('label', {}, ui.element('div', {class: 'sliders'}, ui.body));
      label.append('each warp starts ');
      const choice = ui.element('select', {'aria-label': 'loads in flight of a warp'}, label);
      kept.forEach(({name}, i) => ui.element('option', {value: i, text: name}, choice));
      label.append(' and waits for the last');
      choice.value = chosen;
      choice.onchange = () => {
        const next = Number(choice.value);
        ui.replace({...data, ...kept[next], kept, chosen: next, start: ui.step, moved: true});
      };
      if (data.moved) choice.focus({preventScroll: true});
    }
    const sheet = ui.element('div', {class: 'row'}, ui.body);
    const write = (g, text, x, y, align = 'left') => {
      g.fillStyle = ui.colour('dim');
      g.font = '12px system-ui, sans-serif';
      g.textAlign = align;
      g.fillText(text, x, y);
    };
    ui.canvas({
      label: 'warps of the SM over time', parent: ui.element('div', {style: 'flex:3 1 420px;min-width:0'}, sheet),
      maxWidth: all => all < 700 ? all : Math.floor((all - 22) * 0.72), height: () => HIGH,
      paint(g, width) {
        const x = ns => LEFT + (width - LEFT - 6) * Math.min(ns, shown_ns) / shown_ns, rows = TOP + MEMORY + 8;
        write(g, 'memory', 0, TOP + 17);
        write(g, 'warps', 0, rows + 10);
        g.fillStyle = ui.colour('cell');
        g.fillRect(LEFT, TOP, width - LEFT - 6, MEMORY);
        g.fillRect(LEFT, rows, width - LEFT - 6, most_warps * ROW);
        g.fillStyle = ui.colour('B');
        for (let i = served_offsets[ui.step]; i < served_offsets[ui.step + 1]; i++) g.fillRect(x(served[i]), TOP, Math.max(0.5, x(served[i] + service_ns) - x(served[i]) - 0.4), MEMORY);
        for (let i = wait_offsets[ui.step]; i < wait_offsets[ui.step + 1]; i++) {
          const [warp, start, arrival, end] = waits.subarray(4 * i, 4 * i + 4);
          g.fillStyle = ui.colour('A', 0.4);
          g.fillRect(x(start), rows + warp * ROW, x(arrival) - x(start), ROW - 1);
          g.fillStyle = ui.colour('C');
          g.fillRect(x(arrival), rows + warp * ROW, x(end) - x(arrival), ROW - 1);
        }
        for (let ns = 0; ns < shown_ns; ns += width < 480 ? 400 : 200) write(g, ns ? `${ns.toLocaleString('en')} ns` : '0', x(ns), HIGH - 6, 'center');
      },
    });
    ui.canvas({
      label: 'share of the time in which memory is busy, over the number of warps', parent: ui.element('div', {style: 'flex:1 1 200px;min-width:0'}, sheet),
      maxWidth: all => all < 700 ? all : Math.floor((all - 22) * 0.28), height: () => HIGH,
      paint(g, width) {
        const floor = HIGH - 24, x = n => 40 + (width - 50) * n / most_warps, y = share => floor - (floor - 34) * share;
        write(g, 'memory is busy', 0, 12);
        [0, 0.5, 1].forEach(share => {
          write(g, `${100 * share}%`, 36, y(share) + 4, 'right');
          g.fillStyle = ui.colour('line');
          g.fillRect(40, y(share), width - 46, 1);
        });
        [0, 32, 64].filter(n => n <= most_warps).forEach(n => write(g, n || '0 warps', x(n), HIGH - 6, n === most_warps ? 'right' : 'center'));
        kept.forEach((run, i) => {
          g.strokeStyle = ui.colour('A', i === chosen ? 1 : 0.35);
          g.lineWidth = i === chosen ? 2.5 : 1.5;
          g.beginPath();
          warps.forEach((n, k) => g.lineTo(x(n), y(run.shares[k])));
          g.stroke();
          const half = run.shares.findIndex(share => share > 0.5);
          write(g, i ? data.loads[i] : run.name, x(warps[half]) - 6, y(run.shares[half]), 'right');
        });
        g.fillStyle = ui.colour('hot');
        g.beginPath();
        g.arc(x(warps[ui.step]), y(shares[ui.step]), 6, 0, 7);
        g.fill();
      },
    });
    const count = ui.stat('warps on the SM'), busy = ui.stat('memory is busy'), rate = ui.stat('GB/s, all SMs together');
    ui.legend([['B', 'memory answers'], ['A', 'a warp waits', 0.4], ['C', 'a warp works']]);
    ui.element('p', {class: 'wait', text: data.caption, style: 'margin-top:6px'}, ui.footer);
    return step => {
      count(warps[step]);
      busy(`${Math.round(100 * shares[step])}%`);
      rate(Math.round(shares[step] * data.gb_s));
    };
  },
};
