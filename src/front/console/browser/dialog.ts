/** Asks before something that cannot be taken back. The browser keeps the focus inside and gives it back at the end. */
import { type Child, element, newId, onClick, refill } from './element.ts';
import { notice, whileBusy } from './notices.ts';

export interface Question {
  readonly title: string;
  readonly text: Child;
  /** What the button does, as a verb. */
  readonly action: string;
  /** A name that has to be typed first, where a slip would cost data. */
  readonly typed?: string;
  /** Throws Refusal: it is shown, and the question stays. */
  readonly act: () => Promise<void>;
}

export function ask(question: Question): void {
  const titleId = newId('question');
  const problems = element('div', {});
  const cancel = element('button', { type: 'button', class: 'quiet' }, 'Cancel');
  const act = element('button', { type: 'submit', class: 'danger' }, question.action);
  const input = element('input', { type: 'text', autocomplete: 'off', spellcheck: 'false' });
  const inputId = newId('typed');
  input.id = inputId;
  const asked =
    question.typed === undefined
      ? null
      : element(
          'div',
          { class: 'field' },
          element('label', { for: inputId }, 'Type ', element('strong', {}, question.typed), ' to confirm'),
          input,
        );
  const form = element(
    'form',
    { method: 'dialog', novalidate: true },
    element('h2', { id: titleId }, question.title),
    element('p', {}, question.text),
    asked,
    problems,
    element('div', { class: 'actions' }, act, cancel),
  );
  const dialog = element('dialog', { 'aria-labelledby': titleId }, form);
  onClick(cancel, () => end(dialog));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (question.typed !== undefined && input.value !== question.typed) {
      refill(problems, notice('danger', element('p', {}, 'This is not the name.')));
      return input.focus();
    }
    void whileBusy(act, problems, async () => {
      await question.act();
      end(dialog);
    });
  });
  show(dialog);
  // The button that does nothing has the focus first: Enter by mistake changes nothing.
  if (asked === null) cancel.focus();
  else input.focus();
}

/** Shows a dialog as a modal one, until it is ended: by Escape too. */
export function show(dialog: HTMLDialogElement): void {
  dialog.addEventListener('close', () => leave(dialog));
  document.body.append(dialog);
  dialog.showModal();
}

/** Ends a dialog at once, where the event of its close comes later: nobody types into a dialog that is gone meanwhile. */
export function end(dialog: HTMLDialogElement): void {
  dialog.close();
  leave(dialog);
}

function leave(dialog: HTMLDialogElement): void {
  dialog.remove();
  // What opened it may be gone, and with it the place to go on from.
  if (document.activeElement === document.body) document.querySelector('h1')?.focus();
}
