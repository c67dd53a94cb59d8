// Each trace's 32 banks, a row per wavefront. Different words in one bank are drawn on top of each other. Lanes with wide
// accesses are served in groups, one after the other: a line parts the wavefronts of two groups.
const view = {
  start(ui, data) {
    const sheet = ui.element('div', {class: 'row'}, ui.body), PASS = 6.5;
    const most = data.alone ? 32 : Math.max(8, ...data.sides.flatMap(side => [...side.passes]));   // a slider leaves the height as it is
    const FLOOR = 28 + most * PASS;
    for (const side of data.sides) {
      ui.canvas({
        label: `${side.label}: words in each of the 32 banks`, parent: sheet, maxWidth: data.alone ? 620 : 455, height: () => FLOOR + 26,
        paint(g, width) {
          const step = Math.min(ui.step, side.count - 1), facts = side.sites[side.site[step]], passes = side.passes[step];
          const w = width / 32, {bytes} = facts, atOnce = side.at_once[step], groups = [];
          for (let lane = 0; lane < 32; lane++) {
            const element = side.index[step * 32 + lane];
            if (lane % atOnce === 0) groups.push(Array.from({length: 32}, () => new Set()));
            if (element < 0) continue;
            const word = Math.floor(labkitAddress(facts, element) / 4);
            for (let part = 0; part < Math.max(1, bytes / 4); part++) groups.at(-1)[(word + part) % 32].add(word + part);
          }
          g.textAlign = 'left';
          g.font = '600 12px system-ui, sans-serif';
          g.fillStyle = ui.colour('fg');
          g.fillText(side.label, 0, 13, width * 0.6);
          g.textAlign = 'right';
          g.font = '600 13px system-ui, sans-serif';
          g.fillStyle = ui.colour(passes > side.least[step] ? 'hot-text' : 'fg');
          g.fillText(passes + (passes > 1 ? ' wavefronts' : ' wavefront'), width - 2, 13);
          g.fillStyle = ui.colour('cell');
          for (let bank = 0; bank < 32; bank++) g.fillRect(bank * w, FLOOR - most * PASS - 4, w - 2, most * PASS + 4);
          let before = 0;   // wavefronts of the groups below
          for (const stacks of groups) {
            stacks.forEach((words, bank) => {
              g.fillStyle = ui.colour(words.size > 1 ? 'hot' : 'C', 0.9);
              for (let i = 0; i < words.size; i++) g.fillRect(bank * w, FLOOR - (before + i + 1) * PASS, w - 2, PASS - 1.5);
            });
            const own = Math.max(...stacks.map(words => words.size));
            g.fillStyle = ui.colour('fg');
            if (before && own) g.fillRect(0, FLOOR - before * PASS - 0.25, width - 2, 1);
            before += own;
          }
          g.font = '12px system-ui, sans-serif';
          g.fillStyle = ui.colour('dim');
          g.textAlign = 'left';
          g.fillText('bank 0', 0, FLOOR + 17);
          g.textAlign = 'right';
          g.fillText('31', width - 2, FLOOR + 17);
        },
      });
    }
    const isParted = data.sides.some(side => side.at_once.some(lanes => lanes < 32));
    ui.legend([['C', 'a word alone in its bank'], ['hot', 'different words in one bank: one after the other'],
      ...(isParted ? [['fg', 'between lanes that are served together and the next ones', 'line']] : [])]);
    return null;
  },
};
