import { announce } from '../announce.ts';
import { call } from '../api.ts';
import { snippet } from '../copy.ts';
import { type Child, element, onClick, refill } from '../element.ts';
import { setUps } from '../mcp-clients.ts';
import { loaded, whileBusy } from '../notices.ts';
import type { MadeKey } from '../shapes.ts';

export function clientSetUp(): Child {
  // The address that clients must use is the server's own word for it, whatever this page was opened by.
  const load = () => call<{ readonly resource: string }>('GET', '/.well-known/oauth-protected-resource/mcp');
  return element(
    'section',
    { class: 'card', 'aria-labelledby': 'set-up' },
    element('h2', { id: 'set-up', tabindex: '-1' }, 'Set up a client'),
    loaded(load, ({ resource }) => setUpParts(resource)),
  );
}

function setUpParts(server: string): Child {
  const shown = element('div', { class: 'loaded' });
  const problems = element('div', {});
  const withKey = element('button', { type: 'button', class: 'quiet' }, 'Use a new read key instead');
  onClick(withKey, () =>
    whileBusy(withKey, problems, async () => {
      const { key } = await call<MadeKey>('POST', '/v1/keys', { name: 'MCP client', scope: 'read' });
      refill(shown, snippetsOf(server, key));
      refill(
        told,
        'The key is in the lines below, and shown only now. It may read; revoke it under API keys.',
      );
      announce('A read key was made and put into the lines');
    }),
  );
  const told = element(
    'p',
    {},
    'With these lines the client opens a page of this server when it connects, where you log in and say what it may have.',
  );
  refill(shown, snippetsOf(server, null));
  return [told, element('div', { class: 'actions' }, withKey), problems, shown];
}

function snippetsOf(server: string, key: string | null): readonly Child[] {
  return setUps.flatMap(({ client, step, snippet: of }) => {
    const made = of(server, key);
    if (made === null) return [];
    const { kind, text } = made;
    return [
      element(
        'div',
        { class: 'stack' },
        element('h3', {}, client),
        step === null ? null : element('p', { class: 'hint' }, step),
        snippet(text, `Set-up of ${client}`, kind),
      ),
    ];
  });
}
