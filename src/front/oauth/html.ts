import { escapeHtml } from '../../base/html-text.ts';

export interface Html {
  readonly markup: string;
}

type Value = Html | string | number | null | readonly Html[];

/**
 * Markup whose values are escaped: text within a template is markup, and what is put in is text, unless it is markup itself. So what
 * a client calls itself stays text wherever it stands, in attributes (which are always quoted) too.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  const parts = strings.map((text, at) => text + (at < values.length ? markupOf(values[at] ?? null) : ''));
  return { markup: parts.join('') };
}

function markupOf(value: Value): string {
  if (value === null) return '';
  if (typeof value === 'string' || typeof value === 'number') return escapeHtml(String(value));
  if ('markup' in value) return value.markup;
  return value.map(({ markup }) => markup).join('');
}
