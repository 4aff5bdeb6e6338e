import { announce } from './announce.ts';
import { element, onClick } from './element.ts';

/** Something to take away: selectable, and with a button that puts it into the clipboard. */
export function copyable(text: string, what: string): HTMLElement {
  const shown = element('code', { class: 'copyable-text', tabindex: '0' }, text);
  return element('div', { class: 'copyable' }, shown, copyButton(text, what, shown));
}

/** Several lines, as they are typed into a shell. */
export function snippet(text: string, what: string, kind = 'Shell'): HTMLElement {
  const code = element('code', {}, text);
  const shown = element('pre', { tabindex: '0', role: 'region', 'aria-label': what }, code);
  const head = element(
    'div',
    { class: 'snippet-head' },
    element('span', {}, kind),
    copyButton(text, what, code),
  );
  return element('div', { class: 'snippet' }, head, shown);
}

function copyButton(text: string, what: string, shown: HTMLElement): HTMLButtonElement {
  const button = element(
    'button',
    { type: 'button', class: 'quiet copy', 'aria-label': `Copy ${what}` },
    'Copy',
  );
  const done = (said: string, told: string): void => {
    button.textContent = said;
    announce(told);
  };
  // Where the clipboard is refused (plain http beyond this machine has none) the text is selected for the person's own copy.
  const select = (): void => {
    getSelection()?.selectAllChildren(shown);
    done('Press Ctrl+C', `${what} is selected. Press Ctrl+C to copy it.`);
  };
  return onClick(button, () => {
    if (navigator.clipboard === undefined) return select();
    navigator.clipboard.writeText(text).then(() => done('Copied', `${what} was copied`), select);
  });
}
