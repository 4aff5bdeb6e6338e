import { type Child, element } from './element.ts';

/** A page's heading, which has the focus when the page is shown. */
export function heading(title: string, lead: Child = null): HTMLElement {
  return element(
    'div',
    { class: 'heading' },
    element('h1', { tabindex: '-1' }, title),
    lead === null ? null : element('p', { class: 'lead' }, lead),
  );
}
