/** Documents by text, pattern or meaning, and by filter; each hit with the line that matched. */
import { announce } from '../announce.ts';
import { call, documentPath, namespacePath } from '../api.ts';
import type { App, View, ViewParameters } from '../app.ts';
import { type Child, element, onClick, refill } from '../element.ts';
import { writeExactly } from '../exact-json.ts';
import { choiceField, textArea, textField } from '../fields.ts';
import { form, wrongField } from '../form.ts';
import { formatNumber, formatPrecise, formatTime, plural } from '../format.ts';
import { heading } from '../heading.ts';
import { piecesOf } from '../highlight.ts';
import { answerOrNothing, empty, loaded, notice, whileBusy } from '../notices.ts';
import type { Found, Hit, StoredDocument } from '../shapes.ts';
import { offerNamespaces } from './namespaces.ts';

interface Asked {
  readonly namespace: string;
  readonly q: string;
  readonly mode: string;
  /** JSON as it was typed: parsed and written again, long numbers would lose digits. */
  readonly filter: string;
}

const modes = [
  { value: 'text', label: 'Text' },
  { value: 'regex', label: 'Regex' },
  { value: 'meaning', label: 'Meaning' },
] as const;

export function searchView(_app: App, parameters: ViewParameters): View {
  const results = element('section', { class: 'results', 'aria-label': 'Results' });
  const namespace = textField(
    { name: 'namespace', label: 'Namespace' },
    { value: parameters.get('namespace') ?? '', autocomplete: 'off', spellcheck: 'false', required: true },
  );
  const searching = form({
    fields: [
      namespace,
      textField(
        { name: 'q', label: 'Search for', hint: 'Nothing lists the newest documents.' },
        { type: 'search', value: parameters.get('q') ?? '', autocomplete: 'off', spellcheck: 'false' },
      ),
      textArea(
        { name: 'filter', label: 'Filter', hint: 'JSON over metadata, such as {"year": {"gte": 2026}}' },
        { rows: 2 },
      ),
      choiceField({ name: 'mode', label: 'As' }, modes, 'text'),
    ],
    submit: 'Search',
    layout: 'search',
    async send(values) {
      const asked = values as unknown as Asked;
      const path = `${namespacePath(asked.namespace)}/search`;
      const found = await answerOrNothing(results, call<Found>('POST', path, requestBody(asked, '')));
      refill(results, answer(asked, found));
      announce(
        found.hits.length === 0 ? 'No documents match' : `${plural(found.hits.length, 'document')} below`,
      );
    },
  });
  offerNamespaces(namespace.node);
  // Once it is part of the page: before that a form sends nothing.
  if (parameters.has('namespace')) queueMicrotask(() => searching.requestSubmit());
  return {
    title: 'Search',
    body: [
      heading('Search', 'Text is matched literally, in any case; newest documents come first.'),
      element('section', { class: 'card', 'aria-label': 'Question' }, searching),
      results,
    ],
  };
}

function requestBody({ q, mode, filter }: Asked, cursor: string): string {
  const asked = mode === 'meaning' ? { semantic: q } : { q, regex: mode === 'regex', cursor };
  const body = JSON.stringify(asked);
  if (filter.trim() === '') return body;
  try {
    JSON.parse(filter);
  } catch {
    throw wrongField('filter', 'is not JSON');
  }
  return `${body.slice(0, -1)},"filter":${filter}}`;
}

function answer(asked: Asked, first: Found): Child {
  if (first.hits.length === 0) {
    return empty(
      'No documents match',
      element('p', {}, `${plural(first.docs, 'document')} in ${asked.namespace} were searched.`),
    );
  }
  const list = element(
    'ol',
    { class: 'hits' },
    first.hits.map((hit) => hitItem(asked, hit)),
  );
  const problems = element('div', {});
  const more = element('button', { type: 'button', class: 'quiet', hidden: first.next === '' }, 'Show more');
  let { next } = first;
  onClick(more, () => {
    void whileBusy(more, problems, async () => {
      const found = await call<Found>(
        'POST',
        `${namespacePath(asked.namespace)}/search`,
        requestBody(asked, next),
      );
      next = found.next;
      more.hidden = next === '';
      const added = found.hits.map((hit) => hitItem(asked, hit));
      list.append(...added);
      announce(`${plural(added.length, 'more document')} below`);
      added[0]?.querySelector('summary')?.focus();
    });
  });
  return [
    element('h2', { class: 'hidden' }, 'Results'),
    element(
      'p',
      { class: 'muted' },
      `${formatPrecise(first.took_ms)} ms, ${first.temperature}, ${plural(first.docs, 'document')} in ${asked.namespace}`,
    ),
    first.partial
      ? notice('warning', element('p', {}, 'This answer is incomplete: the search met its limit.'))
      : null,
    list,
    more,
    problems,
  ];
}

function hitItem(asked: Asked, hit: Hit): HTMLElement {
  const pieces = piecesOf(hit.line, hit.match, asked.mode === 'text');
  const line = element(
    'p',
    { class: 'line' },
    hit.match === '' ? null : element('span', { class: 'line-number' }, formatNumber(hit.line_number)),
    element(
      'span',
      {},
      pieces.map(({ text, matched }) => (matched ? element('mark', {}, text) : text)),
    ),
  );
  return element(
    'li',
    { class: 'hit' },
    element(
      'div',
      { class: 'hit-head' },
      element('h3', {}, hit.id),
      element(
        'span',
        { class: 'muted' },
        hit.score === undefined ? formatTime(hit.written_at) : `score ${formatPrecise(hit.score)}`,
      ),
    ),
    line,
    metaTags(hit.meta),
    wholeDocument(asked.namespace, hit.id),
  );
}

const tagsMax = 8;
const tagCharactersMax = 60;

function metaTags(meta: Hit['meta']): Child {
  const entries = Object.entries(meta);
  if (entries.length === 0) return null;
  return element(
    'ul',
    { class: 'tags', 'aria-label': 'Metadata' },
    entries.slice(0, tagsMax).map(([key, value]) => {
      const text = typeof value === 'string' ? value : writeExactly(value).replace(/\s+/g, ' ');
      const cut = text.length > tagCharactersMax ? `${text.slice(0, tagCharactersMax)}…` : text;
      return element('li', {}, element('span', { class: 'tag-key' }, key), ` ${cut}`);
    }),
    entries.length > tagsMax ? element('li', {}, `${entries.length - tagsMax} more`) : null,
  );
}

/** Read when it is asked for: a read counts as a query. */
function wholeDocument(namespace: string, id: string): HTMLElement {
  const place = element('div', {});
  const summary = element('summary', {}, 'Whole document', element('span', { class: 'hidden' }, ` ${id}`));
  const details = element('details', {}, summary, place);
  details.addEventListener(
    'toggle',
    () => {
      const read = () => call<StoredDocument>('GET', documentPath(namespace, id));
      refill(
        place,
        loaded(read, (stored) => documentText(stored)),
      );
    },
    { once: true },
  );
  return details;
}

function documentText({ text, meta, written_at }: StoredDocument): Child {
  return [
    element('pre', { class: 'document', tabindex: '0', role: 'region', 'aria-label': 'Text' }, text ?? ''),
    element(
      'pre',
      { class: 'document', tabindex: '0', role: 'region', 'aria-label': 'Metadata' },
      writeExactly(meta ?? {}),
    ),
    element('p', { class: 'muted' }, `Written ${formatTime(written_at)}`),
  ];
}
