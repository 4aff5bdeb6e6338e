/** Small pieces that views are made of: notices, empty states, what is being loaded. */
import { messageOf } from './api.ts';
import { type Child, element, onClick, refill } from './element.ts';

export type Tone = 'info' | 'good' | 'warning' | 'danger';

export function notice(tone: Tone, ...children: readonly Child[]): HTMLElement {
  const role = tone === 'danger' ? 'alert' : tone === 'info' ? null : 'status';
  return element('div', { class: `notice ${tone}`, role }, ...children);
}

export function empty(title: string, ...children: readonly Child[]): HTMLElement {
  return element('div', { class: 'empty' }, element('p', { class: 'empty-title' }, title), ...children);
}

export function badge(tone: Tone | 'plain', text: string): HTMLElement {
  return element('span', { class: `badge ${tone}` }, text);
}

/** A place whose content comes from the server: a word meanwhile, and a way to try again where it did not come. */
export function loaded<Value>(load: () => Promise<Value>, show: (value: Value) => Child): HTMLElement {
  const place = element('div', { class: 'loaded' });
  const begin = (): void => {
    place.setAttribute('aria-busy', 'true');
    refill(place, element('p', { class: 'loading' }, 'Loading…'));
    load()
      .then((value) => refill(place, show(value)))
      .catch((error: unknown) => {
        const again = onClick(element('button', { type: 'button', class: 'quiet' }, 'Try again'), begin);
        refill(place, notice('danger', element('p', {}, messageOf(error)), again));
      })
      .finally(() => place.removeAttribute('aria-busy'));
  };
  begin();
  return place;
}

/** Runs what a button starts: the button rests meanwhile, and a refusal is shown in `problems`. */
export async function whileBusy(
  button: HTMLButtonElement,
  problems: HTMLElement,
  work: () => Promise<void>,
): Promise<void> {
  if (button.getAttribute('aria-disabled') === 'true') return;
  // Not `disabled`, which would take the focus away from whoever pressed it.
  button.setAttribute('aria-disabled', 'true');
  refill(problems);
  try {
    await work();
  } catch (error) {
    refill(problems, notice('danger', element('p', {}, messageOf(error))));
  } finally {
    button.removeAttribute('aria-disabled');
  }
}

/** What was shown stays until there is an answer; a refusal takes it away, so that it is not taken for one. */
export async function answerOrNothing<Value>(results: HTMLElement, asked: Promise<Value>): Promise<Value> {
  try {
    return await asked;
  } catch (error) {
    refill(results);
    throw error;
  }
}
