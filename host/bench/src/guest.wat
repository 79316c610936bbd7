;; The workflows that the bench runs, as a component written by hand: whoever has the binary needs
;; no toolchain for WebAssembly to measure with it.
;;
;; Three workflows, told apart by the length of their names:
;;
;;   steps    input N: N steps one after another, each with a result of 16 bytes
;;   waiter   input N: the same, and then it waits for the event `go`
;;   sleeper  input T: sleeps until T, in milliseconds since 1970
;;
;; Each returns `null`. Whatever else a host could answer (a failed step, a cancel) traps: it does
;; not belong here, and the bench then fails loudly.
;;
;; From outside to inside there are three layers:
;;
;;   1. what is imported: those functions of wit/durable.wit that are called below;
;;   2. two core modules: one owns the memory, since the host needs it to hand over arguments and
;;      results before the other one, which has the code, can be linked with the host's functions;
;;   3. what is exported: wit/guest.wit.
;;
;; How a value of WIT lies in memory and which numbers a call takes is the canonical ABI. In short:
;; text is an address and a length; `option` and `variant` are a tag and then the fields of the
;; widest case; a result of more than one number is written to an address that is given as the last
;; argument.
(component
  ;; ---- 1. What is imported.

  (import "stepwell:workflow/durable@0.1.0" (instance $durable
    ;; The types of wit/types.wit, as `durable` uses them.
    (type $payload' (variant (case "json" string) (case "binary" (list u8))))
    (export "payload" (type $payload (eq $payload')))
    (type $failure' (record
      (field "kind" string)
      (field "message" string)
      (field "retryable" bool)
      (field "retry-after" (option u64))
      (field "details" (option $payload))))
    (export "failure" (type $failure (eq $failure')))
    (type $backoff' (enum "constant" "linear" "exponential"))
    (export "backoff" (type $backoff (eq $backoff')))
    (type $retry-policy' (record
      (field "max-attempts" u32)
      (field "delay" u64)
      (field "backoff" $backoff)
      (field "factor" f64)
      (field "max-delay" u64)
      (field "jitter" f64)))
    (export "retry-policy" (type $retry-policy (eq $retry-policy')))
    (type $step-options' (record
      (field "retry" (option $retry-policy))
      (field "timeout" (option u64))
      (field "deadline" (option u64))))
    (export "step-options" (type $step-options (eq $step-options')))
    (type $attempt-end' (enum
      "failed" "timed-out" "trapped" "host-lost" "limit-exceeded" "cancelled"))
    (export "attempt-end" (type $attempt-end (eq $attempt-end')))
    (type $step-error' (record
      (field "step" string)
      (field "attempts" u32)
      (field "end" $attempt-end)
      (field "retryable" bool)
      (field "cause" $failure)))
    (export "step-error" (type $step-error (eq $step-error')))

    ;; Those of wit/durable.wit itself.
    (type $step-attempt' (record (field "step" u32) (field "number" u32) (field "key" string)))
    (export "step-attempt" (type $step-attempt (eq $step-attempt')))
    (type $step-state' (variant
      (case "execute" $step-attempt)
      (case "backoff" u32)
      (case "completed" $payload)
      (case "failed" $step-error)
      (case "cancelled" string)))
    (export "step-state" (type $step-state (eq $step-state')))
    (type $attempt-state' (variant
      (case "completed")
      (case "backoff" u32)
      (case "failed" $step-error)))
    (export "attempt-state" (type $attempt-state (eq $attempt-state')))
    (type $event-message' (record
      (field "id" string)
      (field "payload" $payload)
      (field "sent-at" u64)))
    (export "event-message" (type $event-message (eq $event-message')))
    (type $wake' (enum "elapsed" "woken"))
    (export "wake" (type $wake (eq $wake')))
    (type $outcome' (variant
      (case "slept" $wake)
      (case "event" $event-message)
      (case "timed-out")
      (case "task" (result $payload (error $step-error)))))
    (export "outcome" (type $outcome (eq $outcome')))
    (type $answer' (record (field "operation" u32) (field "outcome" $outcome)))
    (export "answer" (type $answer (eq $answer')))
    (type $selected' (variant (case "answered" $answer) (case "cancelled" string)))
    (export "selected" (type $selected (eq $selected')))

    (export "step" (func
      (param "name" string) (param "options" $step-options) (result $step-state)))
    (export "retry-step" (func
      (param "step" u32) (param "options" $step-options) (result $step-state)))
    (export "finish-step" (func
      (param "outcome" (result $payload (error $failure))) (result $attempt-state)))
    (export "sleep-until" (func
      (param "name" string) (param "at" u64) (result (result u32 (error $failure)))))
    (export "wait-for-event" (func
      (param "event" string) (param "timeout" (option u64))
      (result (result u32 (error $failure)))))
    (export "select" (func (param "among" (list u32)) (result $selected)))
  ))

  ;; ---- 2. The code.

  ;; One page of memory:
  ;;
  ;;   1024  texts and the manifest, which never change
  ;;   4096  where the host writes what `step` answers, 80 bytes
  ;;   4224  the same for `finish-step`, `sleep-until` and `wait-for-event`, 80 bytes
  ;;   4352  the one operation that `select` is asked about
  ;;   4480  what `select` answers, 104 bytes
  ;;   8192  the heap, up to the end: texts inside of arguments and answers
  (core module $memory
    (memory (export "memory") 1)
    ;; Where the heap's free part begins.
    (global $top (export "top") (mut i32) (i32.const 8192))
    ;; Called by the host for each text that it hands over. Nothing is freed by the piece: before
    ;; each call the code sets `top` back, since it keeps nothing of earlier answers.
    (func (export "realloc")
      (param $old i32) (param $old-size i32) (param $align i32) (param $size i32) (result i32)
      (local $address i32)
      (local.set $address
        (i32.and
          (i32.sub (i32.add (global.get $top) (local.get $align)) (i32.const 1))
          (i32.sub (i32.const 0) (local.get $align))))
      (global.set $top (i32.add (local.get $address) (local.get $size)))
      (if (i32.gt_u (global.get $top) (i32.const 65536)) (then (unreachable)))
      (local.get $address))
    ;; The names of the workflows, of the step, the sleep and the event, and the results.
    (data (i32.const 1024) "steps")
    (data (i32.const 1032) "waiter")
    (data (i32.const 1040) "sleeper")
    (data (i32.const 1048) "s")
    (data (i32.const 1056) "nap")
    (data (i32.const 1064) "go")
    (data (i32.const 1072) "{\"charged\":4200}")
    (data (i32.const 1088) "null")
    ;; Three `workflow-spec`s of 48 bytes: the name's address and length; no summary, no schemas, no
    ;; events, all of which is zero.
    (data (i32.const 1104) "\00\04\00\00\05\00\00\00")
    (data (i32.const 1152) "\08\04\00\00\06\00\00\00")
    (data (i32.const 1200) "\10\04\00\00\07\00\00\00")
    ;; The `manifest`: no SDK, the list of those three at 1104, no tasks.
    (data (i32.const 1248) "\00\00\00\00\00\00\00\00\50\04\00\00\03\00\00\00")
    ;; A `completion`: `done` (0), and from byte 8 on the payload: `json` (0), `null` at 1088.
    (data (i32.const 1280) "\00\00\00\00\00\00\00\00\00\00\00\00\40\04\00\00\04\00\00\00"))

  (core module $code
    (import "memory" "memory" (memory 1))
    (import "memory" "top" (global $top (mut i32)))
    (import "durable" "step" (func $step
      ;; The name; retry: none; timeout: none; deadline: none; where to write the answer.
      (param i32 i32) (param i32 i32 i64 i32 f64 i64 f64) (param i32 i64) (param i32 i64) (param i32)))
    (import "durable" "retry-step" (func $retry-step
      ;; The same with the step's number in place of its name.
      (param i32) (param i32 i32 i64 i32 f64 i64 f64) (param i32 i64) (param i32 i64) (param i32)))
    (import "durable" "finish-step" (func $finish-step
      ;; ok or error; a payload (3 numbers) or a failure (11); where to write the answer.
      (param i32) (param i32 i32 i32 i32 i32 i32 i64 i32 i32 i32 i32) (param i32)))
    (import "durable" "sleep-until" (func $sleep-until
      (param i32 i32) (param i64) (param i32)))
    (import "durable" "wait-for-event" (func $wait-for-event
      (param i32 i32) (param i32 i64) (param i32)))
    (import "durable" "select" (func $select (param i32 i32) (param i32)))

    (func (export "describe") (result i32) (i32.const 1248))

    (func (export "run-task")
      (param i32 i32) (param i32 i32 i32) (param i32) (param i32 i32) (result i32)
      (unreachable))

    (func (export "run")
      (param $name i32) (param $name-length i32)
      (param $kind i32) (param $input i32) (param $input-length i32) (result i32)
      (local $number i64)
      (local.set $number (call $parse (local.get $input) (local.get $input-length)))
      (if (i32.eq (local.get $name-length) (i32.const 7)) ;; sleeper
        (then (call $sleep (local.get $number)))
        (else
          (call $steps (local.get $number))
          (if (i32.eq (local.get $name-length) (i32.const 6)) ;; waiter
            (then (call $wait)))))
      (i32.const 1280))

    ;; Decimal digits as a number.
    (func $parse (param $at i32) (param $length i32) (result i64)
      (local $number i64)
      (block $done
        (loop $next
          (br_if $done (i32.eqz (local.get $length)))
          (local.set $number
            (i64.add
              (i64.mul (local.get $number) (i64.const 10))
              (i64.extend_i32_u (i32.sub (i32.load8_u (local.get $at)) (i32.const 48)))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (local.set $length (i32.sub (local.get $length) (i32.const 1)))
          (br $next)))
      (local.get $number))

    (func $steps (param $count i64)
      (block $done
        (loop $next
          (br_if $done (i64.eqz (local.get $count)))
          (call $one-step)
          (local.set $count (i64.sub (local.get $count) (i64.const 1)))
          (br $next))))

    ;; `step`, and what it says is to be done: `execute` (0), then the body, which does nothing, and
    ;; `finish-step`; `backoff` (1) after an attempt that was lost with its host, then `select` and
    ;; `retry-step`; `completed` (2), then this is a replay.
    (func $one-step
      (global.set $top (i32.const 8192))
      (call $step
        (i32.const 1048) (i32.const 1)
        (i32.const 0) (i32.const 0) (i64.const 0) (i32.const 0) (f64.const 0) (i64.const 0) (f64.const 0)
        (i32.const 0) (i64.const 0)
        (i32.const 0) (i64.const 0)
        (i32.const 4096))
      (block $completed
        (block $execute
          (loop $asked
            (block $backoff
              (block $else
                (br_table $execute $backoff $completed $else (i32.load8_u (i32.const 4096))))
              (unreachable))
            ;; The step's number stands 8 bytes further on.
            (call $until-answered (i32.load (i32.const 4104)))
            (global.set $top (i32.const 8192))
            (call $retry-step
              (i32.load (i32.const 4104))
              (i32.const 0) (i32.const 0) (i64.const 0) (i32.const 0) (f64.const 0) (i64.const 0) (f64.const 0)
              (i32.const 0) (i64.const 0)
              (i32.const 0) (i64.const 0)
              (i32.const 4096))
            (br $asked)))
        (global.set $top (i32.const 8192))
        (call $finish-step
          (i32.const 0)
          (i32.const 0) (i32.const 1072) (i32.const 16)
          (i32.const 0) (i32.const 0) (i32.const 0) (i64.const 0)
          (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
          (i32.const 4224))
        (call $expect-first-case (i32.const 4224))))

    (func $sleep (param $until i64)
      (global.set $top (i32.const 8192))
      (call $sleep-until (i32.const 1056) (i32.const 3) (local.get $until) (i32.const 4224))
      (call $until-answered (call $accepted)))

    (func $wait
      (global.set $top (i32.const 8192))
      (call $wait-for-event (i32.const 1064) (i32.const 2) (i32.const 0) (i64.const 0) (i32.const 4224))
      (call $until-answered (call $accepted)))

    ;; At 4224 is the `result` of an operation that was asked for: 0 for ok, and its number 8 bytes
    ;; further on.
    (func $accepted (result i32)
      (call $expect-first-case (i32.const 4224))
      (i32.load (i32.const 4232)))

    ;; Suspends until this operation is answered.
    (func $until-answered (param $operation i32)
      (i32.store (i32.const 4352) (local.get $operation))
      (global.set $top (i32.const 8192))
      (call $select (i32.const 4352) (i32.const 1) (i32.const 4480))
      (call $expect-first-case (i32.const 4480)))

    ;; All other answers that are as they should be are the first case of their type.
    (func $expect-first-case (param $at i32)
      (if (i32.load8_u (local.get $at)) (then (unreachable)))))

  ;; ---- Linking: the memory first, then the host's functions, then the code.

  (core instance $memory (instantiate $memory))
  (alias core export $memory "memory" (core memory $bytes))
  (alias core export $memory "realloc" (core func $realloc))

  (core func $step (canon lower (func $durable "step")
    (memory $bytes) (realloc $realloc)))
  (core func $retry-step (canon lower (func $durable "retry-step")
    (memory $bytes) (realloc $realloc)))
  (core func $finish-step (canon lower (func $durable "finish-step")
    (memory $bytes) (realloc $realloc)))
  (core func $sleep-until (canon lower (func $durable "sleep-until")
    (memory $bytes) (realloc $realloc)))
  (core func $wait-for-event (canon lower (func $durable "wait-for-event")
    (memory $bytes) (realloc $realloc)))
  (core func $select (canon lower (func $durable "select")
    (memory $bytes) (realloc $realloc)))
  (core instance $host
    (export "step" (func $step))
    (export "retry-step" (func $retry-step))
    (export "finish-step" (func $finish-step))
    (export "sleep-until" (func $sleep-until))
    (export "wait-for-event" (func $wait-for-event))
    (export "select" (func $select)))

  (core instance $code (instantiate $code
    (with "memory" (instance $memory))
    (with "durable" (instance $host))))

  ;; ---- 3. What is exported.

  ;; The types of wit/guest.wit.
  (type $payload (variant (case "json" string) (case "binary" (list u8))))
  (type $failure (record
    (field "kind" string)
    (field "message" string)
    (field "retryable" bool)
    (field "retry-after" (option u64))
    (field "details" (option $payload))))
  (type $attempt-end (enum
    "failed" "timed-out" "trapped" "host-lost" "limit-exceeded" "cancelled"))
  (type $step-error (record
    (field "step" string)
    (field "attempts" u32)
    (field "end" $attempt-end)
    (field "retryable" bool)
    (field "cause" $failure)))
  (type $completion (variant
    (case "done" $payload)
    (case "failed" $failure)
    (case "step-failed" $step-error)
    (case "continue-as-new" $payload)))
  (type $event-spec (record (field "name" string) (field "schema" (option string))))
  (type $workflow-spec (record
    (field "name" string)
    (field "summary" string)
    (field "input-schema" (option string))
    (field "output-schema" (option string))
    (field "events" (list $event-spec))))
  (type $task-spec (record (field "name" string) (field "summary" string)))
  (type $manifest (record
    (field "sdk" string)
    (field "workflows" (list $workflow-spec))
    (field "tasks" (list $task-spec))))

  (func $describe (result $manifest)
    (canon lift (core func $code "describe") (memory $bytes) (realloc $realloc)))
  (func $run (param "workflow" string) (param "input" $payload) (result $completion)
    (canon lift (core func $code "run") (memory $bytes) (realloc $realloc)))
  (func $run-task
    (param "task" string) (param "input" $payload) (param "attempt" u32) (param "key" string)
    (result (result $payload (error $failure)))
    (canon lift (core func $code "run-task") (memory $bytes) (realloc $realloc)))

  (instance $guest
    (export "payload" (type $payload))
    (export "failure" (type $failure))
    (export "attempt-end" (type $attempt-end))
    (export "step-error" (type $step-error))
    (export "completion" (type $completion))
    (export "event-spec" (type $event-spec))
    (export "workflow-spec" (type $workflow-spec))
    (export "task-spec" (type $task-spec))
    (export "manifest" (type $manifest))
    (export "describe" (func $describe))
    (export "run" (func $run))
    (export "run-task" (func $run-task)))
  (export "stepwell:workflow/guest@0.1.0" (instance $guest)))
