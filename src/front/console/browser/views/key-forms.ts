import { announce } from '../announce.ts';
import { call } from '../api.ts';
import { end, show } from '../dialog.ts';
import { element, newId, onClick } from '../element.ts';
import { type Field, selectField, textField } from '../fields.ts';
import { form, wrongField } from '../form.ts';
import type { Key } from '../shapes.ts';

/** What a key may do, typed by a person. */
type Values = Readonly<Record<string, string>>;

const scopes = [
  { value: 'read', label: 'read – search, count, SQL' },
  { value: 'write', label: 'write – and write documents' },
  { value: 'admin', label: 'admin – and keys and billing' },
] as const;

export function newKeyForm(make: (request: object) => Promise<void>): HTMLFormElement {
  const made: HTMLFormElement = form({
    fields: [
      textField({ name: 'name', label: 'Name' }, { autocomplete: 'off', required: true }),
      selectField({ name: 'scope', label: 'Scope' }, scopes, 'write'),
      ...limitFields(null),
    ],
    submit: 'Make the key',
    layout: 'row',
    async send(values) {
      await make({ name: values.name, scope: values.scope, ...limitsOf(values) });
      made.reset();
    },
  });
  return made;
}

function limitFields(key: Key | null): Field[] {
  const cap = (name: string, label: string, value: number | null | undefined) =>
    textField(
      { name, label },
      { inputmode: 'numeric', autocomplete: 'off', value: value ?? '', placeholder: 'no limit' },
    );
  return [
    textField(
      { name: 'namespaces', label: 'Namespaces', hint: 'Names or prefix*, with commas; nothing means all.' },
      { autocomplete: 'off', spellcheck: 'false', value: key?.namespaces.join(', ') ?? '' },
    ),
    cap('rate_per_s', 'Requests a second', key?.rate_per_s),
    cap('cap_queries', 'Queries a month', key?.cap_queries),
    cap('cap_writes', 'Writes a month', key?.cap_writes),
  ];
}

function limitsOf(values: Values): object {
  const names = (values.namespaces ?? '').split(',').map((name) => name.trim());
  return {
    namespaces: names.filter((name) => name !== ''),
    rate_per_s: capOf(values, 'rate_per_s'),
    cap_queries: capOf(values, 'cap_queries'),
    cap_writes: capOf(values, 'cap_writes'),
  };
}

/** What is no number is not sent as one; whether a number will do is for the server to say. */
function capOf(values: Values, name: string): number | null {
  const text = (values[name] ?? '').trim();
  if (text === '') return null;
  if (!/^-?\d+(?:\.\d+)?$/.test(text)) throw wrongField(name, 'must be a whole number');
  return Number(text);
}

/** Shows a key's limits in a dialog: all four are replaced together. */
export function limitsForm(key: Key, done: () => void): void {
  const titleId = newId('limits');
  const cancel = element('button', { type: 'button', class: 'quiet' }, 'Cancel');
  const changing = form({
    fields: limitFields(key),
    submit: 'Save the limits',
    beside: cancel,
    async send(values) {
      await call('PUT', `/v1/keys/${key.id}/limits`, limitsOf(values));
      announce(`The limits of ${key.name} were changed`);
      done();
      end(dialog);
    },
  });
  const dialog = element(
    'dialog',
    { 'aria-labelledby': titleId },
    element('h2', { id: titleId }, `Limits of ${key.name}`),
    changing,
  );
  onClick(cancel, () => end(dialog));
  show(dialog);
}
