/** Props for every island, with all optional values. */
import type { Props as Consent } from '../islands/Consent/props.ts';
import type { Props as ContactForm } from '../islands/ContactForm/props.ts';
import type { Props as Copy } from '../islands/Copy/props.ts';
import type { Props as EntryFilter } from '../islands/EntryFilter/props.ts';
import type { Props as Header } from '../islands/Header/props.ts';
import type { Props as InquiryForm } from '../islands/InquiryForm/props.ts';
import type { Props as Search } from '../islands/Search/props.ts';
import type { Props as Toaster } from '../islands/Toaster/props.ts';
import type { Field } from '../shared/form/schema.ts';

const fields: Field[] = [
  { name: 'name', label: 'Your Name', type: null, required: true, options: [], rows: null },
  {
    name: 'email',
    label: 'Email',
    type: 'email',
    required: true,
    autocomplete: 'email',
    placeholder: 'name@example.com',
  },
  { name: 'phone', label: 'Phone', type: 'tel' },
  {
    name: 'kind',
    label: 'Kind',
    type: 'select',
    placeholder: 'Select',
    options: [{ value: '<25k', label: 'Small' }],
  },
  { name: 'brief', label: 'Brief', type: 'textarea', rows: 4 },
];

const header: Header = {
  home: '/',
  name: 'Halsted Studio',
  mark: '/assets/mark.svg#mark',
  links: [
    { label: 'Projects', href: '/projects', current: true },
    { label: 'Contact', href: '/contact', current: false },
  ],
  labels: { menu: 'Menu', close: 'Close' },
};

const toaster: Toaster = {
  labels: { region: 'Notifications ({hotkey})', toast: 'Notification', close: 'Dismiss' },
};

const contactForm: ContactForm = {
  name: 'contact',
  fields,
  submit: 'Send Message',
  notice: {
    title: 'Not connected',
    text: 'Nothing was sent.',
    action: { label: 'Inquire', href: '/contact' },
  },
  labels: { required: 'needed' },
};

export const inquiryForm: InquiryForm = {
  name: 'inquiry',
  fields,
  submit: 'Send Inquiry',
  email: 'hello@studio.example',
  subject: 'Project inquiry',
  action: null,
  labels: {
    required: 'required',
    missing: 'Fill this in.',
    email: 'An address, please.',
    opened_title: 'It should be open',
    opened_text: 'If not, write to',
    long_title: 'It is too long',
    long_text: 'Send it to',
    message: 'Your message',
    copy: 'Copy',
    copied: 'It is copied.',
    not_copied: 'It is selected.',
    again: 'Open it again',
    empty: 'Open an empty email',
  },
};

const consent: Consent = {
  labels: {
    region: 'Privacy',
    title: 'No cookies',
    text: 'This site sets no cookies.',
    accept: 'Fine',
    decline: 'No, thanks',
  },
};

export const entryFilter: EntryFilter = {
  href: '/blog',
  list: 'entries',
  entries: [['mobile', 'ux'], ['a & b'], []],
  labels: {
    topics: 'Topics',
    all: 'Everything',
    rest: '{count} more',
    whole: { one: 'The one is shown', other: 'All {count, number} are shown' },
    part: { one: '{count} of {total} is shown: {tag}', other: '{count} of {total} are shown: {tag}' },
    unknown: 'Nothing has that topic. All {total} are shown',
  },
};

const search: Search = {
  index: '/search.json',
  labels: {
    label: 'Search',
    found: 'Found: {count}',
    nothing: 'Nothing found',
    failed: 'The search does not work now',
  },
};

const copy: Copy = { labels: { copied: 'Copied', not_copied: 'Selected: copy it with your keyboard' } };

export const samples: Record<string, object> = {
  Consent: consent,
  ContactForm: contactForm,
  Copy: copy,
  EntryFilter: entryFilter,
  Header: header,
  InquiryForm: inquiryForm,
  Search: search,
  Toaster: toaster,
};
