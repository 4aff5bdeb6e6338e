import { messageOf, Refusal } from './api.ts';
import { type Child, element, refill } from './element.ts';
import type { Field } from './fields.ts';
import { notice } from './notices.ts';

export interface FormParts {
  readonly fields: readonly Field[];
  readonly submit: string;
  readonly layout?: 'stacked' | 'row' | 'search';
  /** Buttons and links beside the one that sends. */
  readonly beside?: Child;
  /** Throws Refusal. */
  readonly send: (values: Readonly<Record<string, string>>) => Promise<void>;
}

/** Something that the server need not be asked about. */
export function wrongField(field: string, problem: string): Refusal {
  return new Refusal(0, { error: `${field}: ${problem}`, code: 'invalid', fields: { [field]: problem } });
}

/** Fields, a button, and the interface's answer to them: its own sentences, next to the fields that they name. */
export function form(parts: FormParts): HTMLFormElement {
  const { fields, layout = 'stacked' } = parts;
  const problems = element('div', { class: 'form-problems' });
  const button = element('button', { type: 'submit', class: 'primary' }, parts.submit);
  // `novalidate`: what is wrong is said by the server, in one voice and for all fields at once.
  const made = element(
    'form',
    { class: `form ${layout}`, novalidate: true },
    fields.map((field) => field.node),
    element('div', { class: 'actions' }, button, parts.beside ?? null),
    problems,
  );
  made.addEventListener('submit', (event) => {
    event.preventDefault();
    if (button.getAttribute('aria-disabled') === 'true') return;
    button.setAttribute('aria-disabled', 'true');
    for (const field of fields) field.complain(null);
    refill(problems);
    const values = Object.fromEntries(fields.map((field) => [field.name, field.read()]));
    parts
      .send(values)
      .catch((error: unknown) => showRefusal(error, fields, problems))
      .finally(() => button.removeAttribute('aria-disabled'));
  });
  return made;
}

function showRefusal(error: unknown, fields: readonly Field[], problems: HTMLElement): void {
  const wrong = error instanceof Refusal ? Object.entries(error.fields) : [];
  const [told, untold] = [new Set<Field>(), [] as string[]];
  for (const [path, problem] of wrong) {
    // A part of a field, such as `namespaces[2]`, is that field's.
    const field = fields.find(({ name }) => name === path.split(/[.[]/)[0]);
    if (field === undefined) untold.push(`${path}: ${problem}`);
    else field.complain(path === field.name ? problem : `${path} ${problem}`);
    if (field !== undefined) told.add(field);
  }
  if (told.size === 0 || untold.length > 0) {
    refill(problems, notice('danger', element('p', {}, messageOf(error))));
  }
  fields.find((field) => told.has(field))?.focus();
}
