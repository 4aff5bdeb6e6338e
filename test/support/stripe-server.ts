/** The stand-in for Stripe on a port: its interface, its pages as plain forms, and its events, delivered twice and out of order. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { StripeStandIn } from './stripe-stand-in.ts';
import type { StoredSubscription } from './stripe-wire.ts';

export class StripeServer {
  readonly stripe: StripeStandIn;
  readonly #server: Server;
  /** Where events go, and what signs them. */
  webhook: { readonly url: string; readonly secret: string } | null = null;
  #delivered = 0;

  private constructor(stripe: StripeStandIn, server: Server) {
    this.stripe = stripe;
    this.#server = server;
  }

  static async start(stripe: StripeStandIn): Promise<StripeServer> {
    const server = createServer();
    const made = new StripeServer(stripe, server);
    server.on('request', (request, response) => {
      void bodyOf(request).then(async (body) => {
        const answer = await made.#serve(request, body);
        // A client that hears nothing has to give up by itself.
        if (answer === null) return;
        response.writeHead(answer.status, answer.headers).end(answer.text);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    stripe.pagesUrl = made.url;
    return made;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #serve(request: IncomingMessage, body: string) {
    const { method = 'GET', url = '/' } = request;
    this.stripe.nowMs = Math.max(this.stripe.nowMs, Date.now());
    const [, page, id = ''] = url.split('/');
    if (page === 'pay' || page === 'portal') return this.#page(method, page, id, body);
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    const answer = this.stripe.ask(method, url, body, headers);
    if (answer === null) return null;
    const { status, text, requestId } = answer;
    return { status, text, headers: { 'content-type': 'application/json', 'request-id': requestId } };
  }

  async #page(method: string, page: 'pay' | 'portal', id: string, body: string) {
    if (method === 'GET') {
      const choices = page === 'pay' ? ['Subscribe'] : ['Pay what is due', 'Cancel the plan', 'Back'];
      const buttons = choices.map((name) => `<button name="do" value="${name}">${name}</button>`).join('');
      const text = `<!doctype html><html lang="en"><title>Pages of payment</title><main><h1>Payment</h1><form method="post">${buttons}</form></main></html>`;
      return { status: 200, text, headers: { 'content-type': 'text/html; charset=utf-8' } };
    }
    const back = page === 'pay' ? String(this.stripe.sessions.get(id)?.success_url) : this.#portal(id, body);
    if (page === 'pay') this.stripe.complete(id);
    await this.deliver();
    return { status: 303, text: '', headers: { location: back } };
  }

  #portal(customerId: string, body: string): string {
    const subscription = [...this.stripe.subscriptions.values()].find(
      ({ customer }) => customer === customerId,
    );
    const choice = new URLSearchParams(body).get('do');
    if (subscription !== undefined && choice === 'Pay what is due') this.stripe.payUp(subscription);
    if (subscription !== undefined && choice === 'Cancel the plan') {
      subscription.cancelAtPeriodEnd = true;
      this.stripe.tellOf(subscription);
    }
    return this.stripe.returnUrl;
  }

  /** A payment failed so many days ago, and nobody has paid since. */
  owes(subscription: StoredSubscription, days: number): void {
    this.stripe.owe(subscription, Math.floor(Date.now() / 1_000) - days * 86_400);
  }

  /** All events that were not delivered yet, the last first and each twice. Throws where one is not answered 200. */
  async deliver(): Promise<void> {
    const { webhook } = this;
    if (webhook === null) return;
    const waiting = this.stripe.events.slice(this.#delivered).reverse();
    this.#delivered = this.stripe.events.length;
    for (const { body } of [...waiting, ...waiting]) {
      const signature = this.stripe.signatureOf(body, webhook.secret, Date.now());
      const answer = await fetch(webhook.url, {
        method: 'POST',
        body,
        headers: { 'stripe-signature': signature },
      });
      if (answer.status !== 200)
        throw new Error(`an event was answered ${answer.status}: ${await answer.text()}`);
    }
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
