// A question whose answer is kept back.

const view = {
  start(ui, data) {
    ui.root.setAttribute('aria-label', `Predict: ${labkitPlain(data.say)}`);
    const form = ui.element('form', {style: 'display:flex;gap:10px;align-items:center;flex-wrap:wrap'}, ui.body);
    const name = 'choice' + Math.random();
    let answer;
    if (data.choices.length) {
      const set = ui.element('fieldset', {style: 'border:0;padding:0;margin:0;flex:1 1 100%', 'aria-label': labkitPlain(data.say)}, form);
      for (const choice of data.choices) {
        const line = ui.element('label', {style: 'display:block;min-height:26px'}, set);
        const radio = ui.element('input', {type: 'radio', name, value: choice, required: '', style: 'margin:0 7px 0 0'}, line);
        radio.checked = choice === data.guess;
        ui.say(ui.element('span', {}, line), choice);
      }
      answer = () => form.querySelector('input:checked').value;
    } else {
      const label = ui.element('label', {}, form);
      label.append('Your guess ');
      const input = ui.element('input', {type: 'number', step: 'any', min: '0', required: '', style: 'width:11em'}, label);
      input.oninput = () => input.setCustomValidity(data.unit === 'x' && input.value !== '' && Number(input.value) <= 0
        ? 'Give a number above 0: 1 means equal, 0.5 means half.' : '');
      if (data.guess !== null) input.value = data.guess;
      label.append(' ' + data.unit);
      answer = () => Number(input.value);
    }
    const button = ui.element('button', {type: 'submit', text: 'Keep my guess'}, form);
    const status = ui.element('p', {style: 'margin:8px 0 0;color:var(--dim);min-height:1.45em', role: 'status'}, ui.body);
    const kept = guess => {
      const text = typeof guess === 'number'
        ? `${guess.toLocaleString('en', {maximumFractionDigits: 20})}${data.unit === 'x' ? '' : ' '}${data.unit}`.trim() : guess;
      ui.say(status, `✓ Kept: ${text}. The comparison comes ${page ? 'further down' : 'after the run'}.`);
    };
    const page = ui.root.closest('.labkit-host');   // a book's page, which compares without a kernel
    const send = ui.send ?? (page && (message => page.dispatchEvent(
      new CustomEvent('labkit-guess', {bubbles: true, detail: {question: data.say, ...message}}))));
    if (send) {
      if (data.guess !== null) kept(data.guess);
      const keep = event => {
        event.preventDefault();
        if (!form.reportValidity()) return;
        if (send({guess: answer()})) kept(answer());
      };
      form.onsubmit = keep;
      // JupyterLab takes Enter for itself before a form would see it
      form.onkeydown = event => { if (event.key === 'Enter' && event.target !== button) { event.stopPropagation(); keep(event); } };
    } else {
      button.disabled = true;
      status.textContent = 'Run this cell to answer: a guess needs a running notebook.';
      form.onsubmit = event => event.preventDefault();
    }
  },
};
