/**
 * Stripe's description of its interface, as its own package carries it: the declarations that are generated from its OpenAPI document.
 * Requests that we send and answers of the stand-in are held against them, field by field: what is missing, unknown or of another
 * type is a problem.
 */
import { resolve } from 'node:path';
import ts from 'typescript-5';
import type { Exchange } from './stripe-wire.ts';

const list = (type: string) => `Stripe.ApiList<${type}>`;
/** Operations in use: the declared types of what they take and of what they answer. */
const operations: Readonly<Record<string, readonly [request: string, answer: string]>> = {
  'POST /v1/customers': ['Stripe.CustomerCreateParams', 'Stripe.Customer'],
  'POST /v1/checkout/sessions': ['Stripe.Checkout.SessionCreateParams', 'Stripe.Checkout.Session'],
  'GET /v1/checkout/sessions/{id}': ['Stripe.Checkout.SessionRetrieveParams', 'Stripe.Checkout.Session'],
  'POST /v1/checkout/sessions/{id}/expire': [
    'Stripe.Checkout.SessionExpireParams',
    'Stripe.Checkout.Session',
  ],
  'POST /v1/billing_portal/sessions': [
    'Stripe.BillingPortal.SessionCreateParams',
    'Stripe.BillingPortal.Session',
  ],
  'GET /v1/subscriptions': ['Stripe.SubscriptionListParams', list('Stripe.Subscription')],
  'GET /v1/subscriptions/{id}': ['Stripe.SubscriptionRetrieveParams', 'Stripe.Subscription'],
  'DELETE /v1/subscriptions/{id}': ['Stripe.SubscriptionCancelParams', 'Stripe.Subscription'],
  'GET /v1/invoices': ['Stripe.InvoiceListParams', list('Stripe.Invoice')],
  'GET /v1/prices/{id}': ['Stripe.PriceRetrieveParams', 'Stripe.Price'],
  'GET /v1/billing/meters/{id}': ['Stripe.Billing.MeterRetrieveParams', 'Stripe.Billing.Meter'],
  'GET /v1/billing/meters/{id}/event_summaries': [
    'Stripe.Billing.MeterListEventSummariesParams',
    list('Stripe.Billing.MeterEventSummary'),
  ],
  'POST /v1/billing/meter_events': ['Stripe.Billing.MeterEventCreateParams', 'Stripe.Billing.MeterEvent'],
};
export const describedOperations = Object.keys(operations);

export class StripeDescription {
  readonly #checker: ts.TypeChecker;
  readonly #types = new Map<string, ts.Type>();
  readonly #place: ts.Node;

  constructor() {
    const file = resolve('stripe-description-root.ts');
    const lines = Object.values(operations).flatMap(([request, answer], index) => [
      `export type Request${index} = ${request};`,
      `export type Answer${index} = ${answer};`,
    ]);
    const text = `import Stripe from 'stripe';\n${lines.join('\n')}\n`;
    const options: ts.CompilerOptions = {
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      strict: true,
      skipLibCheck: true,
      noEmit: true,
      types: [],
    };
    const host = ts.createCompilerHost(options);
    const { getSourceFile, fileExists, readFile } = host;
    host.fileExists = (path) => path === file || fileExists.call(host, path);
    host.readFile = (path) => (path === file ? text : readFile.call(host, path));
    host.getSourceFile = (path, ...rest) =>
      path === file
        ? ts.createSourceFile(path, text, ts.ScriptTarget.ES2022)
        : getSourceFile.call(host, path, ...rest);
    const program = ts.createProgram([file], options, host);
    const source = program.getSourceFile(file);
    if (source === undefined) throw new Error('there is no description');
    const [problem] = program.getSemanticDiagnostics(source);
    if (problem !== undefined) throw new Error(ts.flattenDiagnosticMessageText(problem.messageText, '\n'));
    this.#checker = program.getTypeChecker();
    this.#place = source;
    const names = Object.keys(operations);
    for (const statement of source.statements) {
      if (!ts.isTypeAliasDeclaration(statement)) continue;
      const [, side = '', index = ''] = /^(Request|Answer)(\d+)$/.exec(statement.name.text) ?? [];
      this.#types.set(`${side} ${names[Number(index)]}`, this.#checker.getTypeFromTypeNode(statement.type));
    }
  }

  /** What is wrong with an exchange, as sentences; none where it is as described. */
  problemsOf({ operation, request, status, answer }: Exchange): string[] {
    const asked = this.#types.get(`Request ${operation}`);
    const answered = this.#types.get(`Answer ${operation}`);
    if (asked === undefined || answered === undefined) return [`${operation} is not described`];
    const ofRequest = this.#problems(asked, request, { path: `${operation} request`, isForm: true });
    if (status !== 200) return ofRequest;
    return [
      ...ofRequest,
      ...this.#problems(answered, answer, { path: `${operation} answer`, isForm: false }),
    ];
  }

  #problems(
    type: ts.Type,
    value: unknown,
    at: { readonly path: string; readonly isForm: boolean },
  ): string[] {
    if ((type.flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown)) !== 0) return [];
    if (type.isUnion()) {
      const each = type.types.map((one) => this.#problems(one, value, at));
      // The one that fits best tells most.
      return (
        each.toSorted((a, b) => a.length - b.length || (b[0]?.length ?? 0) - (a[0]?.length ?? 0))[0] ?? []
      );
    }
    if (this.#isScalar(type, value, at.isForm)) return [];
    if (typeof value !== 'object' || value === null || !this.#isObject(type)) {
      const shown = JSON.stringify(value) ?? 'nothing';
      return [`${at.path}: ${shown.slice(0, 60)} is not ${this.#checker.typeToString(type).slice(0, 60)}`];
    }
    const element = this.#checker.isArrayType(type)
      ? this.#checker.getTypeArguments(type as ts.TypeReference)[0]
      : undefined;
    if (element !== undefined) {
      if (!Array.isArray(value)) return [`${at.path}: is no array`];
      return value.flatMap((one, index) =>
        this.#problems(element, one, { ...at, path: `${at.path}[${index}]` }),
      );
    }
    return this.#objectProblems(type, value as Record<string, unknown>, at);
  }

  #objectProblems(
    type: ts.Type,
    value: Record<string, unknown>,
    at: { readonly path: string; readonly isForm: boolean },
  ): string[] {
    const index = this.#checker.getIndexInfoOfType(type, ts.IndexKind.String);
    const known = new Map(
      this.#checker.getPropertiesOfType(type).map((property) => [property.name, property]),
    );
    const problems: string[] = [];
    for (const [name, property] of known) {
      const isOptional = (property.flags & ts.SymbolFlags.Optional) !== 0;
      const given = value[name];
      const path = `${at.path}.${name}`;
      if (given === undefined) {
        if (!isOptional) problems.push(`${path}: is missing`);
        continue;
      }
      problems.push(
        ...this.#problems(this.#checker.getTypeOfSymbolAtLocation(property, this.#place), given, {
          ...at,
          path,
        }),
      );
    }
    for (const [name, given] of Object.entries(value)) {
      if (known.has(name)) continue;
      const path = `${at.path}.${name}`;
      if (index === undefined) problems.push(`${path}: is not described`);
      else problems.push(...this.#problems(index.type, given, { ...at, path }));
    }
    return problems;
  }

  #isObject(type: ts.Type): boolean {
    return (type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)) !== 0;
  }

  /** In a form all is text. */
  #isScalar(type: ts.Type, value: unknown, isForm: boolean): boolean {
    const { flags } = type;
    if (type.isStringLiteral()) return value === type.value;
    if ((flags & ts.TypeFlags.BooleanLiteral) !== 0) {
      const name = this.#checker.typeToString(type);
      return value === (name === 'true') || (isForm && value === name);
    }
    if ((flags & ts.TypeFlags.Null) !== 0) return value === null;
    if ((flags & (ts.TypeFlags.Undefined | ts.TypeFlags.Void)) !== 0) return value === undefined;
    if ((flags & ts.TypeFlags.Number) !== 0)
      return (
        typeof value === 'number' || (isForm && typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value))
      );
    if ((flags & ts.TypeFlags.Boolean) !== 0)
      return typeof value === 'boolean' || (isForm && (value === 'true' || value === 'false'));
    // `string & {}`: any text beside the named ones. Decimals are text with digits.
    const isText =
      (flags & ts.TypeFlags.String) !== 0 ||
      (type.isIntersection() && type.types.some((one) => (one.flags & ts.TypeFlags.String) !== 0));
    if (isText) return typeof value === 'string';
    if (
      type.symbol?.name === 'Decimal' ||
      type.aliasSymbol?.name === 'Decimal' ||
      type.symbol?.name === 'DecimalImpl'
    )
      return typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value);
    return false;
  }
}
