"""Eighty prompts to measure with, eight of each domain; no training prompt shares a passage or a topic with them."""

from __future__ import annotations

from specviz.distill.prompts import Prompt

_TEXTS: dict[str, tuple[str, ...]] = {
    "chat": (
        "hi! just got back from the gym and I'm starving, talk to me while I make a sandwich",
        "My girlfriend's parents are visiting for the first time this Saturday and I'm kind of panicking. How do I "
        "make a good impression?",
        "do you ever get tired of answering questions",
        "I turned 30 yesterday and it felt weird. Did other people feel like that too?",
        "Which would you rather have, the power to fly or to be invisible? And why?",
        "The couple upstairs argue every evening and I can hear all of it. Should I say something to them or leave it?",
        "I've just finished a really good series and now I don't know what to do with my evenings...",
        "Thanks for the help earlier! What else could you help me with around the house?",
    ),
    "explanation": (
        "What exactly happens in my body when I get a fever?",
        "can someone explain why the Titanic sank so fast",
        "In plain English, what does a notary do, and when would I need one?",
        "I keep hearing about microplastics in the news. What are they and should I be worried about them?",
        "How did people keep track of time before there were watches?",
        "Explain to a 10 year old how a parachute slows you down.",
        "What's an API? My boss keeps using the word and I just nod.",
        "Why did dinosaurs go extinct but birds survive? Two short paragraphs please.",
    ),
    "story": (
        "Write a short story about an umbrella that is left behind in a café.",
        "Tell me a story about a firefighter who rescues a parrot, and the parrot keeps repeating a secret.",
        "can you write a scene where two strangers get stuck on a Ferris wheel? make it a bit awkward",
        "Make up a bedtime story for my daughter Lily. She is four and loves hedgehogs and pancakes.",
        "Write a 100-word horror story that ends with the line: 'I never had a brother.'",
        "Write the first page of a novel that starts on the morning after a big lottery win.",
        "A scarecrow wakes up one morning and can walk. What happens next? Tell it like a folk tale.",
        "I need a little story for the company newsletter about our coffee machine breaking down. Keep it light.",
    ),
    "list": (
        "What do I need to buy for a newborn? Just the essentials.",
        "give me 6 ways to get red wine out of a carpet",
        "Top ten tourist sights in Edinburgh, with a sentence about each one.",
        "Could you list the steps for changing a flat tyre?",
        "I'm hosting a murder mystery night. List eight suspects with a job and a motive for each.",
        "pros and cons of living in a camper van",
        "Name some yoga poses that are good for the hips.",
        "What are the most common reasons why a washing machine doesn't spin? Make a checklist.",
    ),
    "email": (
        "Write an email to my daughter's football coach to say she twisted her ankle and will miss two games.",
        "I bought a blender from BrightHome last week and it smells of burning. Write to them and ask for a new one.",
        "Need to tell Priya that the slides have to be done by tomorrow noon instead of Friday. Nice but clear please.",
        "Can you write a thank-you note to the nurses on ward 7 who looked after my mum?",
        "Write a cover letter email for a part-time position in a bookstore. I'm 19 and have worked in a cinema.",
        "how do I write back to someone who invited me to speak at a conference when I don't have time? write it "
        "for me",
        "Please write an email to all tenants: the water will be turned off on Tuesday from 9 to 11.",
        "Draft a message to an old mentor whom I haven't spoken to for five years. I'd like to meet her for lunch.",
    ),
    "python": (
        "Write a Python function that takes a list of temperatures and returns the longest streak of rising values.",
        "how can i check in python if a string starts with a vowel",
        "I have a dictionary of names and scores. Write Python that prints the top three as a small table.",
        "Write a Python class Elevator with methods to request a floor and to move one step.",
        "Write a function in Python to check if two rectangles overlap. Each one is given as (x, y, width, height).",
        "Why does my code print None? def add(a, b): print(a + b)\nresult = add(2, 3)\nprint(result)",
        "Write a Python program which asks for a month number and says how many days it has.",
        "Give me a Python function that interleaves two strings, so 'abc' and '123' become 'a1b2c3'.",
    ),
    "javascript": (
        "Write a JavaScript function that returns the weekday for a given date string.",
        "how do i loop over the keys of an object in js and print them with their values",
        "I have an array of orders with a price and a quantity. Write JavaScript to get the total.",
        "Write a JavaScript function wait(ms) that returns a promise, and show me how to use it.",
        "Make a button with JavaScript that changes the background of the page to the next of five colours.",
        "Explain what this does and fix it: for (var i = 0; i < 3; i++) { setTimeout(() => console.log(i), 100); }",
        "Write a JavaScript function to turn '2h 30m' into a number of minutes.",
        "Create a JavaScript class Pedometer that stores steps per day and can give me the weekly average.",
    ),
    "json": (
        "Give me a JSON array of four fictional volcanoes with name, height_m and last_eruption.",
        "make a json config for a coffee machine, with water temperature, grind size and a list of drinks",
        "Convert this to JSON: Anna is 34, lives in Oslo, has two kids called Per and Ida.",
        "I need mock JSON for a dating app profile. Include hobbies as an array and a nested location.",
        "Write a JSON document for a board game with its rules in an array of strings.",
        "Extract the details as JSON with keys when, where and who: Dinner with Lucas at Bar Sol on 4 May, 7pm.",
        "Produce a package.json for a small project called tide-clock. Version 0.1.0, MIT licence.",
        "Return only JSON: three characters for a heist film, each with nickname, skill and weakness.",
    ),
    "summarise": (
        "Summarise this in one sentence: For most of its life the eel is a mystery. It hatches far out in the "
        "Sargasso Sea and drifts for two years towards Europe as a tiny, see-through leaf. Near the coast it turns "
        "into a glass eel and pushes up rivers, where it can live in a pond for twenty years. Then, without any "
        "clear signal, it stops eating, its eyes grow larger and it swims thousands of miles back to where it was "
        "born. No one has ever seen eels spawn in the wild, and nobody has managed to breed them cheaply on farms.",
        "can you give me the short version of this?\n\nHi everyone, as some of you noticed, the heating on the "
        "third floor has been off since Thursday. The technician found a broken valve, and the replacement will "
        "not arrive before next Wednesday. Until then the rooms 301 to 312 are closed. If you normally sit there, "
        "please take a free desk on the first floor or stay at home. The meeting rooms on the second floor can be "
        "booked as usual, except for the large one, which we're using for storage. Sorry for the trouble, and "
        "please keep the fire doors shut. Lena",
        "What are the main points of the following article? Answer with three bullet points.\n\nA study of four "
        "thousand office employees found that those who took a walk at lunchtime slept better than those who ate "
        "at their desks. The difference was small, about eleven minutes a night, but it lasted through the whole "
        "year. Researchers had expected exercise to be the cause. Instead, daylight seemed to matter most: people "
        "who sat outside on a bench did as well as the walkers. The authors warn that the volunteers were mostly "
        "young and healthy. They plan to repeat the work with nurses and other shift staff next spring.",
        "The Kessler family has made accordions in the same yard since 1911. At the best of times there were sixty "
        "craftsmen; now there are four, and the youngest is fifty-two. Each instrument has more than three "
        "thousand parts and takes five months to finish. Cheap imports nearly ended the business in the nineties, "
        "but then folk bands in Canada and Brazil began to order again. Today the waiting list is two years long. "
        "What is missing is an apprentice. 'I can teach anyone with patience,' says Ruth Kessler, 'but nobody has "
        "any.'\n\nSummarize the text above in about 25 words.",
        'Please write a two-sentence summary of this review. "We stayed at the Marlin for three nights in April. '
        "The room was spotless and bigger than it looked online, and the bed was the most comfortable I've had in "
        "years. Breakfast was a let-down: cold toast, weak tea and a queue for the only juice machine. The staff "
        "at reception couldn't have been nicer, especially when my husband left his passport in a cab. The street "
        "is noisy until about one, so ask for a room at the back. For the price I'd still come back, but I'd eat "
        'somewhere else."',
        "tldr this for me please: Starting 1 July, all households will get a brown bin for kitchen scraps. Meat, "
        "bones and cooked food are allowed, plastic bags are not, even if the label says that they are "
        "compostable. The brown bin is collected weekly, and the grey bin will from then on be emptied only every "
        "third week. Families with babies can apply for a second grey bin free of charge. In the trial district, "
        "the amount of rubbish sent to the incinerator fell by a third within four months, and complaints about "
        "smell were rare.",
        "Summarize the passage for a friend who hasn't got much time.\n\nAda Brandt was hired in 1936 to type "
        "letters at an observatory. In the evenings she was allowed to look at the glass plates that astronomers "
        "had thrown out, and she began to mark stars that changed in brightness. By the time anybody took notice, "
        "she had listed over two thousand. The director printed the catalogue under his own name and thanked her "
        "in a footnote for her neat handwriting. It was not until 1971, when she was eighty, that a young "
        "historian found the notebooks in a cupboard and had the record put right.",
        "Shorten this to a headline and one line:\n\nPolice in Northfield were called to a supermarket early on "
        "Sunday when an alarm reported movement inside. Officers surrounded the building and waited for backup "
        "before they went in. In the cereal aisle they met the intruder, a young badger, which had apparently come "
        "through a cat flap in the delivery door. It had opened eleven packets of granola and fallen asleep in the "
        "twelfth. A vet found the animal healthy but overfed, and it was let go in nearby woods the same night. "
        "The manager says the flap has now been nailed up.",
    ),
    "fix": (
        "Please correct this and send me back the corrected text:\n\nDear Mr. Howard, I am writting to you becuase "
        "I havent recieved my certificate yet. The course ended at 12 March and you sayed that it would take two "
        "weeks. I have allready phoned your office three times but nobody pick up. My new employer need to see the "
        "certificate before end of this month otherwise I cant start. Could you please let me know were it is, and "
        "when can I expect it? If there was a problem with my adress I can come and collect it. Your sincerely, "
        "Elena Petrov",
        "fix the grammar and spelling, only give me the fixed text: yesterday me and my cousin goes to the lake to "
        "try out he's new kayak. it was realy windy so we wasn't sure if its a good idea but we done it anyway. "
        "after ten minutes the paddle falled in the water and we had to use our hand's. a old lady on the shore "
        "was laughing so hard that she drop her ice cream. in the end a man with a motorboat pull us back and he "
        "didnt even want no money for it.",
        "Can you proofread my review before I post it? Just return the improved version.\n\nThe headphones looks "
        "great and there very light, you almost forget that your wearing them. The sound are clear, altough the "
        "bass could be more stronger. What I dont like is the case, it's zipper broke after to weeks. I contacted "
        "the seller and they was polite but they did'nt offered me a replacment. Battery last about nine hour "
        "which is alot less then the twenty that is promissed on the box. All in all its a OK product, but I "
        "would'nt buy it again for this prize.",
        "The history of our club begun in 1954 when six friend's decided to sail around the island. They had no "
        "money so they build there first boat from old door's. It sink after a hour. The next year they tryed "
        "again, and this time they has more luck. Since than the club have grown to over two hundred member, who "
        "meets every saturday at the old pier. Everyone are welcome weather they can sail or not. Last summer we "
        "buyed two new dinghy's for the children, wich was only posible thanks to you're donations.\n\nCorrect all "
        "mistakes in the text above. Write out the whole corrected text.",
        'English is my second language, please fix my mistakes and give me the text back. "Since two years I am '
        "living in Manchester and I like it very much, but the first months was difficult. I not understood the "
        "accent of the people and I was shy for ask them to repeat. My neighbour, who is call Barry, he help me a "
        "lot. He explained me where can I buy good vegetable and which bus goes to center. Now I have many "
        "friend's and I speaks more better. Next year I will made a exam, for to become a nurse.\"",
        "correct this pls\n\nHi Dan, sorry for the late replay, I was at my parents house and there internet are "
        "terrible. I looked at you're spreadsheet and I think theirs a mistake in row 40, the total don't match "
        "with the sum of the three column above. Also the tab for february is missing did you deleted it by "
        "accident? Apart from that everything look fine to me. If you wants we can went through it togehter "
        "tommorow, I have time between ten and eleven. Let me know what suit you best, and say hallo too Karin "
        "from me",
        "Correct the punctuation, capital letters and spelling of this text without changing the words. Return the "
        "corrected text only.\n\nmy favorite place is a small beach near whitby its not easy to reach because you "
        "have to climb down a steep stair but thats why its always emty when i was a kid my uncle frank took me "
        "there to look for ammonites we allways brought a flask of cocoa and two bananas once we found one that "
        "was as big as a dinner plate and we had to leave it their because it was to heavy do you think it is "
        "still there i like to imagin that it is",
        "Below is a paragraph from my school essay. Could you fix any errors and write it out again?\n\nZoos is "
        "often critisized, but they can also does good things. Many animal's would of died out if zoos hadn't "
        "breed them. For exemple the Arabian oryx were completly gone from the wild in 1972 and today their are "
        "more than a thousand again. On the other hand, a elephant need alot of space, wich most zoos can not "
        "offers. In my opinion, zoos should keep less species and gives them bigger enclosure's. Than visitors "
        "would learn more, and the animals lifes would be more better to.",
    ),
}

#: Eight prompts of each domain, in the order of `prompts.DOMAINS`.
HELD_OUT: tuple[Prompt, ...] = tuple(Prompt(domain, text) for domain, texts in _TEXTS.items() for text in texts)
