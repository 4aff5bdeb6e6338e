import { announce } from '../announce.ts';
import { call, namespacePath } from '../api.ts';
import type { App } from '../app.ts';
import { end, show } from '../dialog.ts';
import { element, newId, onClick } from '../element.ts';
import { choiceField, textField } from '../fields.ts';
import { form, wrongField } from '../form.ts';
import type { Namespace } from '../shapes.ts';

/** What can be made of a namespace, and what a person has to know of each. */
const kinds = [
  {
    value: 'branch',
    label: 'Branch',
    hint: 'A namespace of its own that begins as this one is now. It shares what neither has changed.',
  },
  {
    value: 'follows',
    label: 'Link',
    hint: 'Another name for this one, to read: what is written there is found here.',
  },
  { value: 'stays', label: 'Link to this version', hint: 'To read this one as it is now, for ever.' },
] as const;

/** Asks in a dialog for the name of a branch or link of the namespace, and makes it. */
export function branchForm(app: App, { name: source }: Namespace): void {
  const titleId = newId('branch');
  const cancel = element('button', { type: 'button', class: 'quiet' }, 'Cancel');
  const making = form({
    fields: [
      choiceField({ name: 'kind', label: 'What to make' }, kinds, 'branch'),
      textField({ name: 'name', label: 'Its name' }, { autocomplete: 'off', spellcheck: 'false' }),
    ],
    submit: 'Make it',
    beside: cancel,
    async send({ kind, name = '' }) {
      if (name === '') throw wrongField('name', 'is missing');
      await make(source, { kind: kind ?? '', name });
      announce(`${name} was made`);
      end(dialog);
      await app.refresh();
    },
  });
  const dialog = element(
    'dialog',
    { 'aria-labelledby': titleId },
    element('h2', { id: titleId }, `Branch or link of ${source}`),
    making,
  );
  onClick(cancel, () => end(dialog));
  show(dialog);
}

async function make(
  source: string,
  { kind, name }: { readonly kind: string; readonly name: string },
): Promise<void> {
  if (kind !== 'stays') {
    const path = `${namespacePath(name)}/${kind === 'branch' ? 'branch' : 'link'}`;
    await call('POST', path, { source });
    return;
  }
  // The present version is what the namespace says now; whoever writes meanwhile has the interface say so.
  const { version } = await call<{ readonly version: number }>('POST', `${namespacePath(source)}/count`, {});
  await call('POST', `${namespacePath(name)}/link`, { source, version });
}
