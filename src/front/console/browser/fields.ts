/** Labelled inputs with a place for a hint and for what is wrong. Their names are those of the interface's fields. */
import { type Attributes, type Child, element, newId, onClick, refill } from './element.ts';

export interface Field {
  readonly name: string;
  readonly node: HTMLElement;
  /** What was typed. */
  read(): string;
  /** Null: nothing is wrong. */
  complain(problem: string | null): void;
  focus(): void;
}

type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

interface FieldOptions {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
}

function field(options: FieldOptions, control: Control, shown: HTMLElement = control): Field {
  const { name, label, hint } = options;
  const [id, hintId, problemId] = [newId(name), newId('hint'), newId('problem')];
  const problem = element('p', { id: problemId, class: 'problem' });
  control.id = id;
  control.setAttribute('name', name);
  control.setAttribute('aria-describedby', hint === undefined ? problemId : `${hintId} ${problemId}`);
  return {
    name,
    node: element(
      'div',
      { class: 'field' },
      element('label', { for: id }, label),
      shown,
      hint === undefined ? null : element('p', { id: hintId, class: 'hint' }, hint),
      problem,
    ),
    read: () => control.value,
    complain(text) {
      refill(problem, text);
      if (text === null) control.removeAttribute('aria-invalid');
      else control.setAttribute('aria-invalid', 'true');
    },
    focus: () => control.focus(),
  };
}

export function textField(options: FieldOptions, attributes: Attributes = {}): Field {
  return field(options, element('input', { type: 'text', ...attributes }));
}

export function textArea(options: FieldOptions, attributes: Attributes, value = ''): Field {
  const control = element('textarea', { spellcheck: 'false', ...attributes });
  control.value = value;
  return field(options, control);
}

export function selectField(
  options: FieldOptions,
  choices: readonly { readonly value: string; readonly label: string }[],
  chosen: string,
): Field {
  const control = element(
    'select',
    {},
    choices.map(({ value, label }) => element('option', { value, selected: value === chosen }, label)),
  );
  return field(options, control);
}

/** A field for a password, with a button that shows it: typing blind is how passwords become short. */
export function passwordField(
  options: FieldOptions,
  autocomplete: 'new-password' | 'current-password',
): Field {
  const control = element('input', { type: 'password', autocomplete, required: true });
  const toggle = element('button', { type: 'button', class: 'reveal', 'aria-pressed': 'false' }, 'Show');
  toggle.setAttribute('aria-label', `Show ${options.label.toLowerCase()}`);
  onClick(toggle, () => {
    const showing = control.type === 'password';
    control.type = showing ? 'text' : 'password';
    toggle.setAttribute('aria-pressed', String(showing));
    toggle.textContent = showing ? 'Hide' : 'Show';
  });
  return field(options, control, element('div', { class: 'with-button' }, control, toggle));
}

/** One of a few, all of them seen: beside each other, or one below the other where they have hints. */
export function choiceField(
  { name, label }: FieldOptions,
  choices: readonly { readonly value: string; readonly label: Child; readonly hint?: string }[],
  chosen: string,
): Field {
  const group = newId(name);
  const problem = element('p', { class: 'problem' });
  const inputs = choices.map(({ value }) =>
    element('input', { type: 'radio', name: group, value, checked: value === chosen }),
  );
  const isStacked = choices.some(({ hint }) => hint !== undefined);
  const labels = choices.map(({ label: choice, hint }, index) =>
    element(
      'label',
      isStacked ? { class: 'option' } : {},
      inputs[index] ?? null,
      element('span', {}, choice, hint === undefined ? null : element('span', { class: 'hint' }, hint)),
    ),
  );
  return {
    name,
    node: element(
      'fieldset',
      { class: isStacked ? 'choice stacked' : 'choice' },
      element('legend', {}, label),
      isStacked ? labels : element('div', { class: 'choices' }, labels),
      problem,
    ),
    read: () => inputs.find((input) => input.checked)?.value ?? '',
    complain: (text) => refill(problem, text),
    focus: () => inputs.find((input) => input.checked)?.focus(),
  };
}
