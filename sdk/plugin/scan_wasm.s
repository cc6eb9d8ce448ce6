//go:build !tinygo

#include "go_asm.h"
#include "textflag.h"

// Go's compiler turns each jump within a function into a dispatch through a table at its top, and each call costs as
// much as looking at 50 bytes. Here loops are WebAssembly's own, and there is one call a look-up. What is done is
// what scan and find do in scan.go, step by step, on text that stands in a batch. At least 64 bytes behind it can be
// read, and after other events zeros come, which end white space and numbers: so the end of the text is looked at
// only where nothing else stops a loop, and a member counts when it ended in time.

#define BYTE I64Load8U (R0)
#define FORWARD(n) Get R0; I64Const $n; I64Add; Set R0

// SPACE moves R0 to the next byte that is not white space.
#define SPACE \
	Block; \
		Loop; \
			BYTE; Tee R5; I64Const $' '; I64GtU; BrIf $1; \
			I64Const $0x100002600; Get R5; I64ShrU; I32WrapI64; I32Const $1; I32And; I32Eqz; BrIf $1; \
			FORWARD(1); \
			Br $0; \
		End; \
	End

// CLOSING moves R0 from within a string to its closing quote, behind the text when there is none, and sets R7 to 1
// if there are escapes on the way, else to 0. It looks at 8 bytes at once, as special does.
#define CLOSING \
	I64Const $0; Set R7; \
	Loop; \
		I64Load (R0); Tee R5; I64Const $0x2222222222222222; I64Xor; I64Const $0x0101010101010101; I64Sub; \
		Get R5; I64Const $0x5C5C5C5C5C5C5C5C; I64Xor; I64Const $0x0101010101010101; I64Sub; \
		I64Or; Get R5; I64Const $-1; I64Xor; I64And; I64Const $0x8080808080808080; I64And; Tee R6; I64Eqz; \
		If; \
			FORWARD(8); \
			Get R0; Get R1; I64LtU; BrIf $1; \
		Else; \
			Get R0; Get R6; I64Ctz; I64Const $3; I64ShrU; I64Add; Set R0; \
			BYTE; I64Const $'\\'; I64Eq; \
			If; \
				I64Const $1; Set R7; \
				FORWARD(2); \
				Get R0; Get R1; I64LtU; BrIf $2; \
			End; \
		End; \
	End

// STORE writes an address to the member, as an offset in the text.
#define STORE(address, field) Get R2; I32WrapI64; Get address; Get R4; I64Sub; I64Store32 $field

// func lookUp(text []byte, name string) *member
TEXT ·lookUp(SB), NOSPLIT, $0-48
	MOVD $·g(SB), R12
	MOVD text_base+0(FP), R4
	Get R4; I64Load text_len+8(FP); I64Const $32; I64Shl; I64Or; Tee R11 // as a span
	I64Load guest_scanned(R12); I64Ne
	If
		// R0 is where we are, R1 the text's end, R2 the member at hand, R3 how many may be written yet, R8 the start
		// of the value, R9 how many names have escapes, R10 the depth of objects and arrays.
		Get R4; I64Load text_len+8(FP); I64Add; Set R1
		Get R4; I64Load guest_data(R12); I64LtU
		Get R1; I64Load guest_data(R12); I64Load (guest_data+8)(R12); I64Add; I64GtU; I32Or
		If // not in the batch
			JMP ·lookUpInGo(SB)
		End
		Get R4; Set R0
		MOVD guest_members(R12), R2
		MOVD (guest_members+16)(R12), R3
done:
		Block
			SPACE
			BYTE; I64Const $'{'; I64Ne; BrIf done
			FORWARD(1)
			SPACE
			BYTE; I64Const $'"'; I64Ne; BrIf done
member:
			Loop
				Get R3; I64Eqz
				If // no room: scan makes more
					JMP ·lookUpInGo(SB)
				End
				FORWARD(1)
				STORE(R0, member_name)
				CLOSING
				STORE(R0, member_nameEnd)
				Get R2; I32WrapI64; Get R7; I64Store32 $member_escapes
				Get R9; Get R7; I64Add; Set R9

				I64Load32U (R0); I64Const $0xFFFFFF; I64And; I64Const $0x223A22; I64Eq // ":"
				If
					FORWARD(2)
				Else
					FORWARD(1)
					SPACE
					BYTE; I64Const $':'; I64Ne; BrIf done
					FORWARD(1)
					SPACE
				End
				STORE(R0, member_value)
				Get R0; Set R8
				BYTE; Tee R5; I64Const $'"'; I64Eq
				If
					FORWARD(1)
					CLOSING
					FORWARD(1)
					Get R7; I32WrapI64
					If
						Get R2; I32WrapI64; I64Load32U member_escapes(R2); I64Const $const_escapedValue; I64Or; I64Store32 $member_escapes
					End
				Else
					Get R5; I64Const $0x20; I64Or; I64Const $'{'; I64Eq // or [
					If
nested:
						Loop
							BYTE; Tee R5; I64Const $'"'; I64Eq
							If
								FORWARD(1)
								CLOSING
								I64Const $0; Set R5 // no bracket
							End
							FORWARD(1)
							Get R10
							Get R5; I64Const $0x20; I64Or; I64Const $'{'; I64Eq; I64ExtendI32U; I64Add
							Get R5; I64Const $0x20; I64Or; I64Const $'}'; I64Eq; I64ExtendI32U; I64Sub
							Tee R10; I64Const $0; I64Ne
							Get R0; Get R1; I64LtU; I32And; BrIf nested
						End
						Get R10; I32WrapI64; BrIf done
					Else
scalar:
						Loop
							BYTE; Tee R5; I64Const $' '; I64GtU
							Get R5; I64Const $','; I64Ne; I32And
							Get R5; I64Const $0x20; I64Or; I64Const $'}'; I64Ne; I32And // nor ]
							If
								FORWARD(1)
								Br scalar
							End
						End
						Get R0; Get R1; Get R0; Get R1; I64LtU; Select; Set R0
					End
				End

				Get R0; Get R1; I64GtU; BrIf done
				Get R0; Get R8; I64LeU; BrIf done
				STORE(R0, member_end)
				Get R2; I64Const $member__size; I64Add; Set R2
				Get R3; I64Const $1; I64Sub; Set R3

				I64Load16U (R0); I64Const $0x222C; I64Eq // ,"
				If
					FORWARD(1)
					Br member
				End
				SPACE
				BYTE; I64Const $','; I64Ne; BrIf done
				FORWARD(1)
				SPACE
				BYTE; I64Const $'"'; I64Eq; BrIf member
			End
		End
		Get R12; I32WrapI64; I64Load (guest_members+16)(R12); Get R3; I64Sub; I64Store $(guest_members+8)
		Get R12; I32WrapI64; Get R9; I64Store32 $guest_escapes
		MOVD R11, guest_scanned(R12)
	End
	I64Load32U guest_escapes(R12); I32WrapI64
	If
		JMP ·lookUpInGo(SB)
	End

	// R1 is the name and R5 its length; R8 are its first 8 bytes, of which R9 has those that are there. R2 is behind
	// the member at hand, R3 how many are left, R10 the one that was found.
	MOVD name_base+24(FP), R1
	MOVD name_len+32(FP), R5
	MOVD guest_members(R12), R2
	MOVD (guest_members+8)(R12), R3
	I64Const $0; Set R10
	Get R5; I64Const $8; I64LtU
	If
		I64Const $0; Set R8
		Get R5; Set R6
short:
		Loop
			Get R6; I64Const $0; I64Ne
			If
				Get R6; I64Const $1; I64Sub; Set R6
				Get R8; I64Const $8; I64Shl
				Get R1; Get R6; I64Add; I32WrapI64; I64Load8U $0; I64Or; Set R8
				Br short
			End
		End
		I64Const $1; Get R5; I64Const $3; I64Shl; I64Shl; I64Const $1; I64Sub; Set R9
	Else
		MOVD (R1), R8
		I64Const $-1; Set R9
	End
none:
	Block
next:
		Loop
			Get R3; I64Eqz; BrIf none
			Get R3; I64Const $1; I64Sub; Set R3
			Get R2; I64Const $member__size; I64Add; Set R2
			Get R2; I32WrapI64; I32Const $(member__size-member_nameEnd); I32Sub; I64Load32U $0
			Get R2; I32WrapI64; I32Const $(member__size-member_name); I32Sub; I64Load32U $0; Tee R0
			I64Sub; Get R5; I64Ne; BrIf next
			Get R0; Get R4; I64Add; Set R0
			I64Load (R0); Get R8; I64Xor; Get R9; I64And; I64Const $0; I64Ne; BrIf next
			Get R5; Set R6
rest:
			Loop // the last 8 bytes, those before, and so on
				Get R6; I64Const $8; I64Sub; Tee R6; I64Const $0; I64GtS
				If
					Get R0; Get R6; I64Add; I32WrapI64; I64Load $0
					Get R1; Get R6; I64Add; I32WrapI64; I64Load $0; I64Eq; BrIf rest
					Br next
				End
			End
			Get R10; I64Eqz
			If
				Get R2; I64Const $member__size; I64Sub; Set R10
				Br next
			End
			I64Const $0; Set R10 // twice
		End
	End
	Get SP
	Get R10
	I64Store ret+40(FP)
	RET
