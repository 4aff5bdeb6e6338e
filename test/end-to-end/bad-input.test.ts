/** Wrong input is answered with the documented status and code, writes nothing, and leaves no memory behind. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { limits } from '../../protocol/limits.ts';
import { type ApiAnswer, ApiClient, type Refusal } from '../support/api-client.ts';
import { jsonSuite } from '../support/json-cases.ts';
import { connectRaw } from '../support/raw-http.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const MiB = 1024 * 1024;

type BadBody = readonly [what: string, body: unknown, refusal: Refusal];

const notJson: Refusal = { status: 400, code: 'bad_request' };
const tooLarge: Refusal = { status: 413, code: 'too_large' };
const invalid = (...fields: string[]): Refusal => ({ status: 422, code: 'invalid', fields });
const deep = (open: string, levels: number, close: string) => open.repeat(levels) + close.repeat(levels);
const good = { id: 'good', text: 'good' };

const malformed: readonly BadBody[] = [
  ['nothing', '', notJson],
  ['white space', ' \n', notJson],
  ['half an object', '{"docs":[{"id":"good","text":"good"}]', notJson],
  ['something behind the object', '{"docs":[{"id":"good","text":"good"}]} x', notJson],
  ['a comma too many', '{"docs":[{"id":"good","text":"good"},]}', notJson],
  ['single quotes', "{'docs':[]}", notJson],
  ['bare NaN', '{"docs":[{"id":"good","text":"good","meta":{"n":NaN}}]}', notJson],
  ['a leading zero', '{"docs":[{"id":"good","text":"good","meta":{"n":01}}]}', notJson],
  ['a raw line feed in a string', '{"docs":[{"id":"good","text":"go\nod"}]}', notJson],
  ['a byte order mark', '\ufeff{"docs":[{"id":"good","text":"good"}]}', notJson],
  ['bytes that are not UTF-8', Buffer.from('{"docs":[{"id":"good","text":"\xff\xfe"}]}', 'latin1'), notJson],
  [
    'a surrogate as three bytes',
    Buffer.from('{"docs":[{"id":"good","text":"\xed\xa0\x80"}]}', 'latin1'),
    notJson,
  ],
  ['UTF-16', Buffer.from('{"docs":[]}', 'utf16le'), notJson],
  ['a thousand levels', deep('[', 1_000, ']'), notJson],
  ['a million levels', deep('[', 1_000_000, ']'), notJson],
  ['a million objects in each other', deep('{"a":', 1_000_000, '}'), notJson],
  ['a million open brackets', '['.repeat(1_000_000), notJson],
];

const badPuts: readonly BadBody[] = [
  ...malformed,
  ['an array', [], invalid('body')],
  ['null', 'null', invalid('body')],
  ['a string', '"text"', invalid('body')],
  ['an empty object', {}, invalid('docs')],
  ['nothing to write', { docs: [], deletes: [] }, invalid('docs')],
  ['docs of null', { docs: null }, invalid('docs')],
  ['docs as an object', { docs: { 0: good } }, invalid('docs')],
  ['a document as a string', { docs: ['good'] }, invalid('docs[0]')],
  ['an unknown field', { docs: [good], upsert: true }, invalid('upsert')],
  ['an unknown field of a document', { docs: [good, { ...good, tags: [] }] }, invalid('docs[1].tags')],
  [
    '__proto__ beside docs',
    '{"docs":[{"id":"good","text":""}],"__proto__":{"wait":true}}',
    invalid('__proto__'),
  ],
  ['__proto__ in a document', '{"docs":[{"__proto__":{"id":"a"},"text":""}]}', invalid('docs[0].__proto__')],
  [
    'constructor in a document',
    '{"docs":[{"id":"a","constructor":{},"text":""}]}',
    invalid('docs[0].constructor'),
  ],
  ['wait as a string', { docs: [good], wait: 'true' }, invalid('wait')],
  ['no id', { docs: [{ text: 'a' }] }, invalid('docs[0].id')],
  ['a number as id', { docs: [{ id: 7, text: 'a' }] }, invalid('docs[0].id')],
  ['an empty id', { docs: [good, { id: '', text: 'a' }] }, invalid('docs[1].id')],
  ['an id of 513 bytes', { docs: [{ id: 'i'.repeat(513), text: 'a' }] }, invalid('docs[0].id')],
  [
    'an id of 513 bytes of UTF-8',
    { docs: [{ id: `${'é'.repeat(256)}i`, text: 'a' }] },
    invalid('docs[0].id'),
  ],
  ['an id of a megabyte', { docs: [{ id: 'i'.repeat(MiB), text: 'a' }] }, invalid('docs[0].id')],
  ['an id of two lines', { docs: [{ id: 'one\ntwo', text: 'a' }] }, invalid('docs[0].id')],
  ['an id with a carriage return', { docs: [{ id: 'one\r', text: 'a' }] }, invalid('docs[0].id')],
  ['an id with NUL', { docs: [{ id: 'a\0b', text: 'a' }] }, invalid('docs[0].id')],
  ['an id with DEL', { docs: [{ id: 'a\u007f', text: 'a' }] }, invalid('docs[0].id')],
  ['an id with a line separator', { docs: [{ id: 'a\u2028b', text: 'a' }] }, invalid('docs[0].id')],
  ['half a surrogate pair in an id', '{"docs":[{"id":"a\\ud800","text":"a"}]}', invalid('docs[0].id')],
  ['half a surrogate pair in a text', '{"docs":[{"id":"a","text":"\\ude00 a"}]}', invalid('docs[0].text')],
  [
    'half a pair in a meta value',
    '{"docs":[{"id":"a","text":"","meta":{"a":"\\ud83d"}}]}',
    invalid('docs[0].meta'),
  ],
  [
    'half a pair in a meta key',
    '{"docs":[{"id":"a","text":"","meta":{"\\ud83d":1}}]}',
    invalid('docs[0].meta'),
  ],
  ['pairs the wrong way round', '{"docs":[{"id":"a","text":"\\ude00\\ud83d"}]}', invalid('docs[0].text')],
  ['half a pair in a delete', '{"deletes":["a\\ud800"]}', invalid('deletes[0]')],
  ['no text', { docs: [{ id: 'a' }] }, invalid('docs[0].text')],
  ['text of null', { docs: [{ id: 'a', text: null }] }, invalid('docs[0].text')],
  [
    'a text over 2 MB',
    { docs: [{ id: 'a', text: 'x'.repeat(limits.documentTextBytesMax + 1) }] },
    invalid('docs[0].text'),
  ],
  ['meta as an array', { docs: [{ ...good, meta: [] }] }, invalid('docs[0].meta')],
  ['meta as a string', { docs: [{ ...good, meta: '{}' }] }, invalid('docs[0].meta')],
  ['a meta over 16 KB', { docs: [{ ...good, meta: { a: 'x'.repeat(16_384) } }] }, invalid('docs[0].meta')],
  [
    'a meta 33 levels deep',
    `{"docs":[{"id":"a","text":"","meta":${deep('{"a":', 33, '}').replace(':}', ':1}')}}]}`,
    invalid('docs[0].meta'),
  ],
  [
    'a meta a thousand levels deep',
    `{"docs":[{"id":"a","text":"","meta":{"a":${deep('[', 1_000, ']')}}}]}`,
    invalid('docs[0].meta'),
  ],
  ['deletes as a string', { docs: [good], deletes: 'a' }, invalid('deletes')],
  ['a delete that is a number', { docs: [good], deletes: ['a', 1] }, invalid('deletes[1]')],
  ['an empty delete', { docs: [good], deletes: [''] }, invalid('deletes[0]')],
  [
    '10,001 documents',
    { docs: Array.from({ length: 10_001 }, (_, i) => ({ id: `d${i}`, text: '' })) },
    tooLarge,
  ],
  ['10,001 deletes', { deletes: Array.from({ length: 10_001 }, (_, i) => `d${i}`) }, tooLarge],
  [
    'documents and deletes that are 10,001',
    {
      docs: Array.from({ length: 5_000 }, (_, i) => ({ id: `d${i}`, text: '' })),
      deletes: Array.from({ length: 5_001 }, (_, i) => `e${i}`),
    },
    tooLarge,
  ],
];

const badPatches: readonly BadBody[] = [
  ...malformed,
  ['an empty object', {}, invalid('docs')],
  ['no documents', { docs: [] }, invalid('docs')],
  ['deletes', { docs: [{ id: 'kept', text: 'a' }], deletes: ['kept'] }, invalid('deletes')],
  ['an unknown field', { docs: [{ id: 'kept', texts: 'a' }] }, invalid('docs[0].texts')],
  ['an id of null', { docs: [{ id: null, text: 'a' }] }, invalid('docs[0].id')],
  [
    'a merged meta over 16 KB',
    { docs: [{ id: 'kept', meta: { b: 'x'.repeat(10_000) } }] },
    invalid('docs[0].meta'),
  ],
  ['10,001 documents', { docs: Array.from({ length: 10_001 }, () => ({ id: 'kept', text: 'a' })) }, tooLarge],
];

const badDeletes: readonly BadBody[] = [
  ...malformed,
  ['an empty object', {}, invalid('ids')],
  ['ids as a string', { ids: 'kept' }, invalid('ids')],
  ['an id of two lines', { ids: ['kept', 'a\nb'] }, invalid('ids[1]')],
  ['an unknown field', { ids: ['kept'], force: true }, invalid('force')],
  ['10,001 ids', { ids: Array.from({ length: 10_001 }, (_, i) => `kept${i}`) }, invalid('ids')],
];

const badSearches: readonly BadBody[] = [
  ...malformed.filter(([what]) => what !== 'a million levels' && what !== 'a million objects in each other'),
  ['more than a megabyte', deep('{"a":', 1_000_000, '}'), tooLarge],
  ['an array', [], invalid('body')],
  ['an unknown field', { q: 'a', query: 'a' }, invalid('query')],
  ['__proto__', '{"__proto__":{"q":"a"}}', invalid('__proto__')],
  ['q as a number', { q: 1 }, invalid('q')],
  ['half a surrogate pair', '{"q":"\\ud800"}', invalid('q')],
  ['a literal of 20 KB', { q: 'x'.repeat(20_000) }, invalid('q')],
  ['a pattern of 1,001 characters', { q: 'x'.repeat(1_001), regex: true }, invalid('q')],
  ['regex as a string', { regex: 'true' }, invalid('regex')],
  ['several wrong fields', { q: 1, limit: 'x', regex: 2 }, invalid('q', 'limit', 'regex')],
  ['filter as text', { filter: '{}' }, invalid('filter')],
  ['an unknown operator', { filter: { a: { __proto: 1 } } }, invalid('filter')],
  ['__proto__ as an operator', '{"filter":{"a":{"__proto__":1}}}', invalid('filter')],
  [
    'a filter of 101 keys',
    { filter: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`k${i}`, i])) },
    invalid('filter'),
  ],
  [
    'a filter of 1,001 values',
    { filter: { a: Array.from({ length: 1_001 }, (_, i) => i) } },
    invalid('filter'),
  ],
  ['a filter over 64 KB', { filter: { a: 'x'.repeat(65_536) } }, invalid('filter')],
];

const searchesOnly: readonly BadBody[] = [
  ['a limit of 0', { limit: 0 }, invalid('limit')],
  ['a limit of 1,001', { limit: 1_001 }, invalid('limit')],
  ['a limit of 1.5', { limit: 1.5 }, invalid('limit')],
  ['a limit beyond 2^53', '{"limit":99999999999999999999}', invalid('limit')],
  ['a limit of 1e999', '{"limit":1e999}', invalid('limit')],
  ['a cursor of nobody', { cursor: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' }, invalid('cursor')],
  ['a cursor as a number', { cursor: 1 }, invalid('cursor')],
  ['a cursor that is not base64', { cursor: '\0\n' }, invalid('cursor')],
];

const person = { email: 'bad@example.com', name: 'Bad', password: 'correct horse' };
const badSignups: readonly BadBody[] = [
  ...badSearches
    .slice(0, malformed.length - 1)
    // It is read for twenty values and no further, so nobody learns that it is no JSON.
    .map(
      ([what, body, refusal]): BadBody =>
        what === 'a thousand levels' ? [what, body, { status: 422, code: 'invalid' }] : [what, body, refusal],
    ),
  ['an array', [], invalid('body')],
  ['an empty object', {}, invalid('email', 'name', 'password')],
  ['no address', { ...person, email: 'bad' }, invalid('email')],
  ['an address of two', { ...person, email: 'a@b@c' }, invalid('email')],
  ['an address with a line feed', { ...person, email: 'bad@exa\nmple.com' }, invalid('email')],
  ['an address of 255 bytes', { ...person, email: `${'a'.repeat(243)}@example.com` }, invalid('email')],
  ['a blank name', { ...person, name: '  ' }, invalid('name')],
  ['a name of 101 characters', { ...person, name: 'n'.repeat(101) }, invalid('name')],
  ['a name with control characters', { ...person, name: 'a\u0007b' }, invalid('name')],
  ['a password of 7 characters', { ...person, password: '1234567' }, invalid('password')],
  ['a password of 201 characters', { ...person, password: 'p'.repeat(201) }, invalid('password')],
  [
    'half a pair in a password',
    '{"email":"bad@example.com","name":"B","password":"12345678\\ud800"}',
    invalid('password'),
  ],
  ['an unknown field', { ...person, admin: true }, invalid('admin')],
  [
    '__proto__',
    '{"email":"bad@example.com","name":"B","password":"12345678","__proto__":{}}',
    invalid('__proto__'),
  ],
];

const badKeys: readonly BadBody[] = [
  ...badSearches.slice(0, malformed.length - 1),
  ['an empty object', {}, invalid('name')],
  ['an unknown scope', { name: 'k', scope: 'root' }, invalid('scope')],
  ['scope of __proto__', { name: 'k', scope: '__proto__' }, invalid('scope')],
  ['a bad pattern', { name: 'k', namespaces: ['good', 'a*b'] }, invalid('namespaces[1]')],
  ['a rate of 0', { name: 'k', rate_per_s: 0 }, invalid('rate_per_s')],
  ['an unknown field', { name: 'k', tenant_id: 1 }, invalid('tenant_id')],
];

const badNamespaces: readonly BadBody[] = [
  ...badSearches.slice(0, malformed.length - 1),
  ['an empty object', {}, invalid('name')],
  ['an empty name', { name: '' }, invalid('name')],
  ['capitals', { name: 'Notes' }, invalid('name')],
  ['65 characters', { name: 'n'.repeat(65) }, invalid('name')],
  ['a slash', { name: 'a/b' }, invalid('name')],
  ['a line feed at the end', { name: 'a\n' }, invalid('name')],
  ['a number', { name: 1 }, invalid('name')],
  ['an unknown field', { name: 'unknown-field', shards: 3 }, invalid('shards')],
];

/** Operations without credentials read no more than a person sends. */
function isTooLargeFor(path: string, body: unknown): boolean {
  if (path !== '/v1/signup' && path !== '/v1/login') return false;
  const bytes = Buffer.byteLength(typeof body === 'string' ? body : (JSON.stringify(body) ?? ''));
  return bytes > limits.openBodyBytesMax;
}

describe('bad input', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let api: ApiClient;
  let keptVersion = 0;

  before(async () => {
    server = await startServer({ folder: temporaryFolder(), env: { TIDEBASE_COMMIT_MS: '20' } });
    const anyone = new ApiClient(server.url);
    api = anyone.as((await anyone.signup('good@example.com')).key);
    const meta = { a: 'x'.repeat(10_000) };
    keptVersion = (await api.put('kept', [{ id: 'kept', text: 'kept', meta }])).version;
  });

  after(async () => {
    api.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });

  /** No namespace was made, and the one that exists is as it was. */
  async function assertNothingWritten(): Promise<void> {
    const names = (await api.listNamespaces()).namespaces.map(({ name }) => name);
    assert.deepEqual(names, ['kept']);
    const { version, hits } = await api.search('kept');
    assert.equal(version, keptVersion);
    assert.deepEqual(
      hits.map((hit) => hit.id),
      ['kept'],
    );
    assert.equal((await api.get('kept', 'kept')).text, 'kept');
  }

  async function assertRefused(
    method: string,
    path: string,
    bodies: readonly BadBody[],
    allowed: readonly number[] = [],
  ): Promise<void> {
    for (const [what, body, refusal] of bodies) {
      try {
        const answer = await api.request(method, path, { body });
        const expected = isTooLargeFor(path, body) ? tooLarge : refusal;
        if (!allowed.includes(answer.status)) assertIs(answer, expected);
      } catch (error) {
        throw new Error(`${method} ${path} with ${what}: ${String(error)}`, { cause: error });
      }
    }
    await assertNothingWritten();
  }

  it('in a put is refused, and nothing is written', async () => {
    await assertRefused('POST', '/v1/namespaces/absent/docs', badPuts);
    await assertRefused('POST', '/v1/namespaces/kept/docs', badPuts);
  });

  it('in a patch is refused, and nothing is written', async () => {
    await assertRefused('PATCH', '/v1/namespaces/kept/docs', badPatches);
    // What is wrong with the body may be found before or after the namespace is looked for.
    await assertRefused('PATCH', '/v1/namespaces/absent/docs', badPatches, [404]);
  });

  it('in a delete is refused, and nothing is deleted', async () => {
    await assertRefused('POST', '/v1/namespaces/kept/delete', badDeletes);
    await assertRefused('POST', '/v1/namespaces/absent/delete', badDeletes, [404]);
  });

  it('in a search and a count is refused', async () => {
    await assertRefused('POST', '/v1/namespaces/kept/search', [...badSearches, ...searchesOnly]);
    await assertRefused('POST', '/v1/namespaces/kept/count', badSearches);
  });

  it('in a sign-up is refused, and nobody is signed up', async () => {
    await assertRefused('POST', '/v1/signup', badSignups);
    await api.signup(person.email);
  });

  it('in a login answers 400, as that operation does', async () => {
    const bad = (...fields: string[]): Refusal => ({ status: 400, code: 'bad_request', fields });
    await assertRefused('POST', '/v1/login', [
      ...badSearches.slice(0, malformed.length - 1),
      ['an empty object', {}, bad('email', 'password')],
      ['an unknown field', { email: 'a@b.c', password: 'correct horse', otp: 1 }, bad('otp')],
      ['a number', { email: 1, password: 'correct horse' }, bad('email')],
    ]);
  });

  it('in a new key is refused, and no key is made', async () => {
    await assertRefused('POST', '/v1/keys', badKeys);
    assert.equal((await api.call<unknown[]>('GET', '/v1/keys')).length, 1);
  });

  it('in a new namespace is refused, and none is made', async () => {
    await assertRefused('POST', '/v1/namespaces', badNamespaces);
  });

  it('in a path or a query string is refused with the name of what is wrong', async () => {
    const name = ['Notes', 'n'.repeat(65), 'a%20b', 'a%2Fb', '%C3%A4', 'a%0A'];
    for (const bad of name) {
      const path = `/v1/namespaces/${bad}`;
      await api.refused(invalid('name'), 'GET', path);
      await api.refused(invalid('name'), 'DELETE', path);
      await api.refused(invalid('name'), 'POST', `${path}/docs`, { body: { docs: [good] } });
    }
    for (const [path, field] of [
      ['/v1/namespaces?limit=0', 'limit'],
      ['/v1/namespaces?limit=1001', 'limit'],
      ['/v1/namespaces?limit=1e3', 'limit'],
      ['/v1/namespaces?limt=1', 'limt'],
      ['/v1/namespaces?__proto__=1', '__proto__'],
      ['/v1/namespaces/kept?x=1', 'x'],
      ['/v1/namespaces/kept/docs/kept?min_version=-1', 'min_version'],
      ['/v1/namespaces/kept/docs/kept?version=1', 'version'],
      ['/v1/namespaces/kept/docs/kept?consistency=weak', 'consistency'],
      ['/v1/namespaces/kept/search?consistency=weak', 'consistency'],
      ['/v1/namespaces/kept/count?consistency=', 'consistency'],
      [`/v1/namespaces/kept/docs/${'i'.repeat(513)}`, 'id'],
      ['/v1/namespaces/kept/docs/a%0Ab', 'id'],
      ['/v1/namespaces/kept/search?q=%00&limit=x', 'limit'],
      ['/v1/me?x=1', 'x'],
    ] as const) {
      await api.refused(invalid(field), 'GET', path);
    }
    for (const query of ['limit=%', 'after=%ff', 'after=%ed%a0%80']) {
      const answer = await api.request('GET', `/v1/namespaces?${query}`);
      assert.ok([400, 422].includes(answer.status), query);
    }
    for (const id of ['0', '-1', 'x', '1.5', '99999999999999999999', '1e3', '%00']) {
      const answer = await api.request('DELETE', `/v1/keys/${id}`);
      assert.ok([404, 422].includes(answer.status), `${id}: ${answer.status}`);
    }
    await assertNothingWritten();
  });

  it('of the public suite of JSON texts never fails the server, as the body of any operation', async () => {
    const operations = [
      ['POST', '/v1/namespaces/suite/docs'],
      ['PATCH', '/v1/namespaces/kept/docs'],
      ['POST', '/v1/namespaces/kept/delete'],
      ['POST', '/v1/namespaces/kept/search'],
      ['POST', '/v1/namespaces/kept/count'],
      ['POST', '/v1/namespaces/kept/warm'],
      ['POST', '/v1/namespaces'],
      ['POST', '/v1/keys'],
      ['POST', '/v1/signup'],
      ['POST', '/v1/login'],
    ] as const;
    assert.ok(jsonSuite.length > 250);
    for (const { name, input } of jsonSuite) {
      const answers = operations.map(([method, path]) => api.request(method, path, { body: input }));
      for (const [i, answer] of (await Promise.all(answers)).entries()) {
        const [method, path] = operations[i] ?? [];
        const shown = `${method} ${path} with ${name}: ${answer.status} ${answer.body}`;
        const isLogin = path === '/v1/login';
        // Of no text of the suite is any operation's request but the empty object, which reads and warms.
        const fine = answer.status === 200 && (path?.endsWith('/warm') || input.trim() === '{}');
        const expected = isTooLargeFor(path ?? '', input)
          ? [413]
          : name.startsWith('n_')
            ? [400]
            : name.startsWith('y_')
              ? [isLogin ? 400 : 422]
              : [400, 422];
        // A text that the suite refuses may be empty, which is no body at all; warm needs none.
        assert.ok(fine || expected.includes(answer.status), shown);
      }
    }
    await assertNothingWritten();
  });

  it('of the public suite as a part of a document is taken or refused, and reads back as it was taken', async () => {
    const texts = jsonSuite.filter(({ input }) => input.length < 10_000);
    for (const { name, input } of texts) {
      const body = `{"docs":[{"id":"part","text":"t","meta":{"a":${input}}}]}`;
      const answer = await api.request('POST', '/v1/namespaces/parts/docs', { body });
      assert.ok([200, 400, 422].includes(answer.status), `${name}: ${answer.status}`);
      if (name.startsWith('n_') && !isValid(body)) assert.equal(answer.status, 400, name);
      if (name.startsWith('y_')) assert.notEqual(answer.status, 400, `${name}: ${answer.body}`);
      if (answer.status !== 200) continue;
      const read = await api.request('GET', '/v1/namespaces/parts/docs/part');
      assert.deepEqual((read.json() as { meta: unknown }).meta, { a: JSON.parse(input) }, name);
    }
    if (texts.length > 0) await api.deleteNamespace('parts');
    await assertNothingWritten();
  });

  it('that is too big is refused before it is read, or as soon as it is too much', async () => {
    const path = '/v1/namespaces/absent/docs';
    const declared = await announce(
      server.port,
      `POST ${path}`,
      String(api.key),
      limits.writeBodyBytesMax + 1,
    );
    assertIs(declared, tooLarge);
    for (const [target, bytes] of [
      ['POST /v1/namespaces/kept/search', limits.queryBodyBytesMax + 1],
      ['POST /v1/signup', limits.queryBodyBytesMax + 1],
      [`POST ${path}`, 999_999_999],
    ] as const) {
      assertIs(await announce(server.port, target, String(api.key), bytes), tooLarge);
    }
    await api.refused(tooLarge, 'POST', path, { chunks: chunks(65, MiB) });
    await api.refused(tooLarge, 'POST', '/v1/namespaces/kept/search', { chunks: chunks(3, MiB) });
    await assertNothingWritten();
  });

  it('of the largest size leaves no memory behind', async (t) => {
    // Just under the limit, and wrong at their ends or by their number.
    const filler = 'x'.repeat(2_000_000);
    const documents = Array.from({ length: 30 }, (_, i) => `{"id":"d${i}","text":"${filler}"}`).join(',');
    const cut = Buffer.from(`{"docs":[${documents}`);
    const half = Buffer.from(`{"docs":[${documents},{"id":"last","text":"\\ud800"}]}`);
    const many = `{"id":"same","text":"${'y'.repeat(5_900)}"}`;
    const numerous = Buffer.from(`{"docs":[${Array.from({ length: 10_001 }, () => many).join(',')}]}`);
    const path = '/v1/namespaces/absent/docs';
    const memory: number[] = [];

    for (let repetition = 1; repetition <= 8; repetition++) {
      if (repetition % 2 === 0) await api.refused(notJson, 'POST', path, { body: cut });
      else await api.refused(invalid('docs[30].text'), 'POST', path, { body: half });
      await api.refused(tooLarge, 'POST', path, { body: numerous });
      await api.refused(tooLarge, 'POST', path, { chunks: chunks(65, MiB) });
      memory.push(server.residentBytes());
    }

    // A body that waits for its garbage collection is no leak, so the lowest of three readings counts.
    const [early, late] = [Math.min(...memory.slice(2, 5)), Math.min(...memory.slice(5, 8))];
    t.diagnostic(`resident after the 5th repetition ${mb(early)} MB, after the 8th ${mb(late)} MB`);
    t.diagnostic(`all: ${memory.map(mb).join(' ')}`);
    assert.ok(late - early < 100 * MiB, `from ${mb(early)} to ${mb(late)} MB`);
    await assertNothingWritten();
  });
});

function assertIs(answer: ApiAnswer, refusal: Refusal): void {
  const shown = answer.body.toString().slice(0, 300);
  assert.equal(answer.status, refusal.status, shown);
  const { code, fields = {} } = answer.json() as { code: string; fields?: object };
  assert.equal(code, refusal.code, shown);
  for (const field of refusal.fields ?? [])
    assert.ok(Object.hasOwn(fields, field), `fields lack ${field}: ${shown}`);
}

/** The answer to a head that announces a body of which nothing is sent. */
async function announce(port: number, target: string, key: string, bytes: number): Promise<ApiAnswer> {
  const connection = await connectRaw(port);
  connection.send(
    `${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${bytes}\r\n\r\n`,
  );
  const [answer] = await connection.waitForAnswers(1);
  connection.destroy();
  assert.ok(answer !== undefined, `${target} with ${bytes} bytes is answered before they come`);
  const { status, headers, body } = answer;
  return {
    status,
    headers: Object.fromEntries(headers),
    body,
    json: () => JSON.parse(body.toString()) as unknown,
  };
}

function* chunks(count: number, bytes: number): Iterable<Uint8Array> {
  const chunk = Buffer.alloc(bytes, ' ');
  for (let i = 0; i < count; i++) yield chunk;
}

function isValid(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function mb(bytes: number): number {
  return Math.round(bytes / MiB);
}
